/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Receives that wait for their number. A receive with wildcards belongs to an envelope only when it has completed, and
 * takes its message before all later receives that match it. Until then such a later receive has no number either. So
 * these receives are kept in the order in which they were posted. The list has a fixed size. Requires the lock.
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

/* A receive, by its arguments; either number is negative for a wildcard. */
struct ibp_posted_receive {
    ibp_handle communicator;
    int source, tag;
};

/* A source or a tag that is any. */
#define IBP_ANY (-1)

/* Return whether a receive must wait: it has wildcards, or another one that waits may take its message. */
bool ibp_receive_waits(const struct ibp_posted_receive *receive);

/* Add one that waits. Return its number in the list, from 1; 0 where there is no space. */
unsigned ibp_receive_enter(const struct ibp_posted_receive *receive, uintptr_t request,
                           const struct ibp_instance_known *known);

/* Note what is known of it; and its request, which a blocking receive has not. */
void ibp_receive_set_known(unsigned number, const struct ibp_instance_known *known);
void ibp_receive_set_request(unsigned number, uintptr_t request);

/* Note that a receive completed, with what its status says; or that it will not. */
void ibp_receive_complete(unsigned number, int source, int tag, uint32_t end_origin, uint64_t enter_ns,
                          uint64_t exit_ns);
void ibp_receive_cancel(unsigned number);

/* Note that the program cancels a receive: whether it takes a message is known when it completes. */
void ibp_receive_try_cancel(unsigned number);
bool ibp_receive_is_cancelling(unsigned number);

/* Drop the receives of a communicator, or with 0 all, and number no more of them. */
void ibp_receives_disorder(ibp_handle communicator);

/* Keep the sample of a message. */
void ibp_message_keep(const struct ibp_instance_known *known, enum ibp_side side, uint32_t end_origin,
                      uint64_t enter_ns, uint64_t exit_ns);

/* Set what is known of a message by its number. */
void ibp_message_set_number(struct ibp_instance_known *known, const struct ibp_numbered *numbered, int tag);

#endif
