/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samples of the calls that pass the wrappers: collectives here; messages and completions below.
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
    /* IBP_HANDLE of that argument; 0 where it has none. */
    ibp_handle communicator;
    /* The bytes that a collective's arguments ask for. */
    const struct ibp_demanding *demanding;
};

/* A collective call that is being made. */
struct ibp_sampled_collective {
    struct ibp_instance_known known;
    /* The hash chooses it. It is timed: if it turns out to be long, it is kept too. */
    bool is_sampled, is_timed;
    /* Set where it makes a communicator. */
    struct ibp_making making;
};

/* Number a collective call on its communicator, before it is made; and note its end. */
void ibp_collective_begin(struct ibp_sampled_collective *sampled, const struct ibp_called *called);
void ibp_collective_end(struct ibp_sampled_collective *sampled, const struct ibp_called *called, int result);

/* Count persistent requests that are about to be started, if none of them is sampled and no search is needed. Return false
 * for all others. One thread is in MPI. */
bool ibp_starts_are_unsampled(void *const *requests, int count);

/* Note that persistent requests are about to be started by a call. */
void ibp_sampled_starts(void *const *requests, int count, struct ibp_call *call);

/* A call that completes requests. */
struct ibp_sampled_completion {
    /* When it was entered; 0 where it concerns no sampled request. */
    uint64_t enter_ns;
    /* Which of its requests are sampled. */
    uint32_t found;
    struct {
        uint32_t index, serial;
        unsigned order;
        uintptr_t request;
    } request[IBP_OPEN_REQUESTS_MAX];
    /* In place of MPI_STATUSES_IGNORE; NULL where they are the program's. */
    void *statuses;
    size_t status_bytes;
    long few[1024 / sizeof(long)];
};

/* Find the sampled ones of a call's requests, before it is made; and note which of them it completed. The arguments may be
 * changed: receives with wildcards need statuses. */
void ibp_completion_begin(struct ibp_sampled_completion *completion, unsigned operation, long *arguments);
void ibp_completion_end(struct ibp_sampled_completion *completion, unsigned operation, struct ibp_call *call,
                        const long *arguments, int result);

/* Forget a request that the program frees; and one whose completion cannot be seen, with the lock held. */
void ibp_sampled_request_freed(uintptr_t request);
void ibp_sampled_request_lost(uintptr_t request);

/* Note that the program cancels a request: if it succeeds, later messages have other numbers at the two ends. */
void ibp_sampled_request_cancelled(uintptr_t request);

#endif
