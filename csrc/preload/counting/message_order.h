/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Receives that wait for their number. The envelope of a receive with wildcards is known only when the receive has
 * completed. The receive takes its message before all later receives that match the message. Until it completes, these
 * later receives have no number either. Therefore all waiting receives are kept in the order in which they were posted.
 * The list has a fixed size. Requires the lock.
 */
#ifndef IBPROF_COUNTING_MESSAGE_ORDER_H
#define IBPROF_COUNTING_MESSAGE_ORDER_H

#include "counting/envelopes.h"
#include "counting/open_requests.h"
#include "libmpi/library.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_WAITING_RECEIVES_MAX 64

/* Number of receives in the list. */
extern IBP_INTERNAL uint32_t ibp_waiting_receives;

/* A receive by its arguments; source and tag are negative for a wildcard. */
struct ibp_posted_receive {
    ibp_handle communicator;
    int source, tag;
};

/* A wildcard source or tag. */
#define IBP_ANY (-1)

/* Return whether a receive must wait: it has wildcards, or a waiting receive may take its message. */
bool ibp_receive_waits(const struct ibp_posted_receive *receive);

/* Add a waiting receive. Return its number in the list, from 1; 0 where there is no space. */
unsigned ibp_receive_enter(const struct ibp_posted_receive *receive, uintptr_t request,
                           const struct ibp_instance_known *known);

/* Note the known data of a waiting receive, and its request; a blocking receive has no request. */
void ibp_receive_set_known(unsigned number, const struct ibp_instance_known *known);
void ibp_receive_set_request(unsigned number, uintptr_t request);

/* The call that completes a message: the record of its origin, the number of messages that it completes (0 where
 * unknown), and its times. */
struct ibp_completing {
    uint32_t origin, messages;
    uint64_t enter_ns, exit_ns;
};

/* Note that a receive completed, with the values of its status; or that it will not complete. */
void ibp_receive_complete(unsigned number, int source, int tag, const struct ibp_completing *completing);
void ibp_receive_cancel(unsigned number);

/* Note that the program cancels a receive. Its completion shows whether it took a message. */
void ibp_receive_try_cancel(unsigned number);
bool ibp_receive_is_cancelling(unsigned number);

/* Drop the receives of a communicator, or of all communicators with 0, and number no more of them. */
void ibp_receives_disorder(ibp_handle communicator);

/* Keep the sample of a message. */
void ibp_message_keep(const struct ibp_instance_known *known, enum ibp_side side,
                      const struct ibp_completing *completing);

/* Set the data that a message's number determines. */
void ibp_message_set_number(struct ibp_instance_known *known, const struct ibp_numbered *numbered, int tag);

#endif
