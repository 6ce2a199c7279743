/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samples of calls, taken in the wrappers: first collectives, then messages and completions.
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

/* A call, as its wrapper sees it. */
struct ibp_called {
    unsigned operation;
    struct ibp_call *call;
    const long *arguments;
    unsigned count;
    /* IBP_HANDLE of the communicator argument; 0 if there is none. */
    ibp_handle communicator;
    /* The bytes that a collective's arguments ask for. */
    const struct ibp_demanding *demanding;
    /* When a blocking collective was entered. */
    uint64_t entered_ns;
};

/* A collective call in progress. */
struct ibp_sampled_collective {
    struct ibp_instance_known known;
    /* `is_sampled`: the hash chooses the call. `is_timed`: the call is timed, and kept if it is one of the longest. */
    bool is_sampled, is_timed;
    /* Set if the call creates a communicator. */
    struct ibp_making making;
};

/* Return whether a collective is complete when its call returns: its time is then known. */
bool ibp_is_blocking_collective(unsigned operation);

/* Number a collective call on its communicator before the call. Note the end of the call. */
void ibp_collective_begin(struct ibp_sampled_collective *sampled, const struct ibp_called *called);
void ibp_collective_end(struct ibp_sampled_collective *sampled, const struct ibp_called *called, int result);

/* Count persistent requests before their start, if none of them is sampled and no search is needed. Return false for
 * all other requests. One thread is in MPI. */
bool ibp_starts_are_unsampled(void *const *requests, int count);

/* Note that a call is about to start persistent requests. */
void ibp_sampled_starts(void *const *requests, int count, struct ibp_call *call);

/* A call that completes requests. */
struct ibp_sampled_completion {
    /* When the call was entered; 0 where it concerns no sampled request. */
    uint64_t enter_ns;
    /* Number of requests that the call may complete, and number of sampled ones among them. */
    uint32_t requests, found;
    struct {
        uint32_t index, serial;
        unsigned order;
        uintptr_t request;
    } request[IBP_OPEN_REQUESTS_MAX];
    /* Replaces MPI_STATUSES_IGNORE; NULL where the program passes statuses. */
    void *statuses;
    size_t status_bytes;
    long few[1024 / sizeof(long)];
};

/* Find the sampled requests of a call before the call. Note which of them the call completed. The arguments may be
 * changed: receives with wildcards need statuses. */
void ibp_completion_begin(struct ibp_sampled_completion *completion, unsigned operation, long *arguments);
void ibp_completion_end(struct ibp_sampled_completion *completion, unsigned operation, struct ibp_call *call,
                        const long *arguments, int result);

/* Forget a request that the program frees. Forget a request whose completion cannot be seen, with the lock held. */
void ibp_sampled_request_freed(uintptr_t request);
void ibp_sampled_request_lost(uintptr_t request);

/* Note that the program cancels a request. After a successful cancellation, the two sides number later messages
 * differently. */
void ibp_sampled_request_cancelled(uintptr_t request);

#endif
