/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samples of collectives, and of calls that start or complete requests. Wrappers of MPI calls call these functions.
 */
#ifndef IBPROF_CALLS_SAMPLED_CALLS_H
#define IBPROF_CALLS_SAMPLED_CALLS_H

#include "counting/communicator_names.h"
#include "counting/current_call.h"
#include "counting/ledger.h"
#include "counting/open_requests.h"
#include "counting/samples.h"

#include <stdbool.h>
#include <stdint.h>

struct ibp_called {
    unsigned operation;
    struct ibp_call *call;
    const long *arguments;
    unsigned count;
    /* IBP_HANDLE of the communicator argument; 0 if the call has no such argument. */
    ibp_handle communicator;
    /* For a collective: the arguments that determine its demand. */
    const struct ibp_demanding *demanding;
    /* Time at which a blocking collective was entered; 0 for other calls, and while no samples are taken. */
    uint64_t entered_ns;
};

struct ibp_sampled_collective {
    struct ibp_instance_known known;
    /* `is_sampled`: true if the hash chooses the call. `is_timed`: true if the call is timed; its sample is recorded if
     * the score is one of the largest. */
    bool is_sampled, is_timed;
};

bool ibp_is_blocking_collective(unsigned operation);

/* ibp_collective_begin: before a collective, assign it a sequence number on its communicator. ibp_collective_end: after
 * the collective, record its sample. */
void ibp_collective_begin(struct ibp_sampled_collective *sampled, const struct ibp_called *called);
void ibp_collective_end(struct ibp_sampled_collective *sampled, const struct ibp_called *called, int result);

/* If no samples are taken, return true and count nothing. If all envelopes are known, no message is sampled, and no
 * receive waits (counting/message_order.h), count the messages that these persistent requests will start, and return
 * true. Otherwise return false and count nothing. Call this only while at most one thread can be in MPI. */
bool ibp_starts_are_unsampled(void *const *requests, int count);

/* Before a call starts persistent requests: assign sequence numbers to the messages and collectives of the requests. */
void ibp_sampled_starts(void *const *requests, int count, struct ibp_call *call);

struct ibp_sampled_completion {
    /* Time at which the call was entered; 0 if no request of the call is sampled. */
    uint64_t enter_ns;
    /* `requests`: number of requests that the call may complete. `found`: number of sampled requests among these. The
     * first `found` elements of `request` are the sampled requests. */
    uint32_t requests, found;
    struct {
        uint32_t index, serial;
        unsigned order;
        uintptr_t request;
    } request[IBP_OPEN_REQUESTS_MAX];
    /* Statuses that replace MPI_STATUSES_IGNORE; NULL if the program passes statuses. */
    void *statuses;
    size_t status_bytes;
    long few[1024 / sizeof(long)];
};

/* ibp_completion_begin: before a call, find its sampled requests. If a receive has wildcards, replace
 * MPI_STATUSES_IGNORE in `arguments` with statuses of ibprof. ibp_completion_end: after the call, record samples of the
 * completed requests. */
void ibp_completion_begin(struct ibp_sampled_completion *completion, unsigned operation, long *arguments);
void ibp_completion_end(struct ibp_sampled_completion *completion, unsigned operation, struct ibp_call *call,
                        const long *arguments, int result);

/* ibp_sampled_request_freed: forget a request that the program frees. ibp_sampled_request_lost: forget a request whose
 * completion ibprof cannot see; the lock must be held. */
void ibp_sampled_request_freed(uintptr_t request);
void ibp_sampled_request_lost(uintptr_t request);

/* When the program cancels a request: stop sampling messages to which sender and receiver could assign different
 * numbers. */
void ibp_sampled_request_cancelled(uintptr_t request);

#endif
