/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samples of messages. Wrappers of calls that post sends and receives call these functions.
 */
#ifndef IBPROF_CALLS_SAMPLED_MESSAGES_H
#define IBPROF_CALLS_SAMPLED_MESSAGES_H

#include "counting/calls.h"
#include "counting/envelopes.h"
#include "counting/message_order.h"
#include "counting/open_requests.h"

#include <stdbool.h>
#include <stdint.h>

/* Maximum size in bytes of an MPI_Status in the supported ABIs. */
#define IBP_STATUS_BYTES 32

struct ibp_message_places;

/* A call that posts a send, a receive, or both. */
struct ibp_sampled_message {
    /* Positions of the call's arguments; NULL if the call posts no message, or if its messages are not numbered. */
    const struct ibp_message_places *places;
    struct ibp_instance_known sent, received;
    bool is_send_sampled, is_receive_sampled;
    /* The envelope of a message that is numbered but not sampled; NULL for all other messages. */
    struct ibp_envelope *envelope;
    /* For a receive that cannot be numbered yet: its identifier in the list of waiting receives; otherwise 0. */
    unsigned order;
    /* Time at which the call was entered; 0 if no message of the call needs this time. */
    uint64_t enter_ns;
    /* A status that replaces MPI_STATUS_IGNORE. */
    long status[IBP_STATUS_BYTES / sizeof(long)];
};

/* ibp_message_begin: before a call, assign sequence numbers to its messages. If ibprof needs a status, replace
 * MPI_STATUS_IGNORE in `arguments` with a status of ibprof. ibp_message_end: after the call, record samples or remember
 * requests. */
void ibp_message_begin(struct ibp_sampled_message *sampled, unsigned operation, struct ibp_call *call, long *arguments);
void ibp_message_end(struct ibp_sampled_message *sampled, unsigned operation, bool is_large, const long *arguments,
                     int result);

/* ibp_partitioned_init: remember a request of MPI_Psend_init or MPI_Precv_init. ibp_partitions_ready: note that
 * partitions of a request are ready. The sample of a send begins when the last partitions are ready. */
void ibp_partitioned_init(unsigned operation, const struct ibp_posted_receive *posted, uintptr_t request,
                          uint64_t bytes);
void ibp_partitions_ready(uintptr_t request);

/* Assign a sequence number to the message that a persistent request starts. The lock must be held. */
void ibp_message_start(struct ibp_open_request *entry, struct ibp_call *call);

/* Return whether a status argument is MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE. */
bool ibp_status_is_ignored(long status);

/* Read source and tag of element `index` of an array of statuses. */
void ibp_status_read(const void *statuses, uint32_t index, int *source, int *tag);

/* Return whether element `index` of an array of statuses belongs to a cancelled message. */
bool ibp_status_is_cancelled(const void *statuses, uint32_t index);

/* Return `request`; 0 for MPI_REQUEST_NULL, and for the shared request that calls return if the operation is complete
 * at once. */
uintptr_t ibp_own_request(uintptr_t request);

/* Return the record index of the origin to which a call's sent bytes belong. The lock must be held. */
uint32_t ibp_call_origin_record(struct ibp_call *call);

#endif
