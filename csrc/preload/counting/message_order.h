/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Receives that cannot be numbered yet. The envelope of a receive with wildcards is unknown until the receive
 * completes. If a later receive could match the same message, MPI matches the earlier receive. So the later receive
 * gets no number before the receive with wildcards completes. Receives without a number wait in a list of fixed size,
 * in the order of their posts. All functions require the lock.
 */
#ifndef IBPROF_COUNTING_MESSAGE_ORDER_H
#define IBPROF_COUNTING_MESSAGE_ORDER_H

#include "counting/envelopes.h"
#include "counting/open_requests.h"
#include "libmpi/library.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_WAITING_RECEIVES_MAX IBP_OPEN_REQUESTS_MAX

extern IBP_INTERNAL uint32_t ibp_waiting_receives;

/* The arguments of a receive. Source and tag may be IBP_ANY. */
struct ibp_posted_receive {
    ibp_handle communicator;
    int source, tag;
};

/* A wildcard source or tag. */
#define IBP_ANY (-1)

/* Return whether a receive must wait in the list: the receive has wildcards, or its message may match an earlier
 * receive in the list. */
bool ibp_receive_waits(const struct ibp_posted_receive *receive);

/* Add a receive to the list. Return its identifier in the list, from 1; 0 if the list is full. */
unsigned ibp_receive_enter(const struct ibp_posted_receive *receive, uintptr_t request,
                           const struct ibp_instance_known *known);

/* Store `known`, or `request`, in the waiting receive with identifier `number`. A blocking receive has no request. */
void ibp_receive_set_known(unsigned number, const struct ibp_instance_known *known);
void ibp_receive_set_request(unsigned number, uintptr_t request);

/* The call that completes a message. `origin`: index of the record of the call's origin. `messages`: number of messages
 * that the call completes; 0 if unknown. */
struct ibp_completing {
    uint32_t origin, messages;
    uint64_t enter_ns, exit_ns;
};

/* ibp_receive_complete: a waiting receive has completed; `source` and `tag` are from its status. ibp_receive_cancel: a
 * waiting receive will receive no message. */
void ibp_receive_complete(unsigned number, int source, int tag, const struct ibp_completing *completing);
void ibp_receive_cancel(unsigned number);

/* ibp_receive_try_cancel: the program has called MPI_Cancel for a waiting receive. Only the completion shows whether
 * the receive was cancelled or got a message. */
void ibp_receive_try_cancel(unsigned number);
bool ibp_receive_is_cancelling(unsigned number);

/* Drop the waiting receives on a communicator (0: all communicators), and never number receives on the communicator
 * again. */
void ibp_receives_disorder(ibp_handle communicator);

/* When a message is posted: set `known->late_ns` to the longest time between successive posts of the present round so
 * far. A round ends when the key of its first message occurs again, or after 64 further messages. */
void ibp_message_post(struct ibp_instance_known *known, uint64_t key, uint64_t now_ns);

/* Record the sample of a message, if the hash chooses the message or the score is one of the largest. */
void ibp_message_keep(const struct ibp_instance_known *known, enum ibp_side side,
                      const struct ibp_completing *completing);

/* Copy the data of a numbered message to `known`. */
void ibp_message_set_number(struct ibp_instance_known *known, const struct ibp_numbered *numbered, int tag);

#endif
