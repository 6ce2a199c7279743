/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Received bytes in Open MPI. Only a completed request shows how many bytes were received, and from which rank.
 *
 * When a request completes, Open MPI calls the request's callback (`req_complete_cb`), which ibprof sets. A message
 * from this process to itself shows where a request stores `req_complete_cb` and the status. A second message tests the
 * offsets (completion_probe.h). If the test fails, ibprof records no received bytes, and adds a note to the recording.
 * See docs/decisions/0004.
 */
#ifndef IBPROF_SOURCES_OPENMPI_COMPLETION_H
#define IBPROF_SOURCES_OPENMPI_COMPLETION_H

#include "counting/context.h"
#include "counting/counters.h"
#include "libmpi/library.h"
#include "platform/system.h"
#include "sources/openmpi/table.h"

#include <stdbool.h>
#include <stddef.h>

/* Two values of Open MPI's req_complete. All other values are pointers to data of a waiting thread. */
#define IBP_OPENMPI_PENDING ((void *)0)
#define IBP_OPENMPI_COMPLETED ((void *)1)

/* A function that Open MPI calls when a request completes. The function must return 0. */
typedef int ibp_openmpi_complete_function(void *request);

/* The common part of requests of all Open MPI components: the status and the following members (ompi_request_t of 4.0
 * to 5.0). */
struct ibp_openmpi_request {
    struct ibp_openmpi_status status;
    void *volatile complete;
    int state;
    bool persistent;
    int fortran_index;
    void *start;
    /* The function that frees the request. */
    void *volatile release;
    void *cancel;
    void *callback;
    /* Data for the callback: a watch (IBP_WATCH_OF) or the address of a context. */
    uint64_t datum;
    ibp_handle communicator;
};

/* The offset in bytes of struct ibp_openmpi_request in a request. */
extern IBP_INTERNAL size_t ibp_openmpi_request_offset;

static inline struct ibp_openmpi_request *ibp_openmpi_request_of(void *request)
{
    return (struct ibp_openmpi_request *)((char *)request + ibp_openmpi_request_offset);
}

/* Open MPI's function that frees a request; NULL if ibprof does not replace the function. The function is replaced only
 * if several threads may be in MPI. */
typedef int ibp_openmpi_release_function(void **);
extern IBP_INTERNAL ibp_openmpi_release_function *ibp_openmpi_release;

/* A watch: the operation and communicator of a receive, as data for a callback. A watch contains the communicator,
 * because requests of some Open MPI components lack the communicator. The handle of the communicator fits into a watch,
 * because addresses have at most 48 bits. */
#define IBP_WATCH_KEY_BITS 14
#define IBP_WATCH_OF(communicator, operation, kind)                                                                    \
    ((uint64_t)(communicator) << IBP_WATCH_KEY_BITS | IBP_KEY_OF(operation, kind, IBP_DIRECTION_RECEIVED))
#define IBP_WATCH(communicator, operation) IBP_WATCH_OF(communicator, operation, IBP_KIND_USER)

void ibp_openmpi_count_watched(const struct ibp_openmpi_status *status, uint64_t watch);

/* Count the received bytes of a request for the operation and communicator of a watch, as soon as the request is
 * complete. */
void ibp_openmpi_request_watch(void *request, uint64_t watch);

/* Like ibp_openmpi_request_watch, for a persistent request that is about to be started. No other thread may use the
 * request. */
void ibp_openmpi_request_watch_next(void *request, uint64_t watch);

/* The callback that counts the received bytes of a request in a context. The datum is the context's address. Use this
 * callback only if at most one thread at a time can be in MPI. */
ibp_openmpi_complete_function ibp_openmpi_request_arrived;
int ibp_openmpi_request_expect_slowly(struct ibp_openmpi_request *part, struct ibp_context *context);
void ibp_openmpi_count_other(const struct ibp_openmpi_status *status, struct ibp_context *context);

static inline void ibp_openmpi_count_received(const struct ibp_openmpi_status *status, struct ibp_context *context)
{
    if (IBP_LIKELY(status->source == context->receive.peer) && IBP_LIKELY(!status->cancelled))
        ibp_add(context->receive.amount, status->bytes);
    else
        ibp_openmpi_count_other(status, context);
}

/* Count the received bytes of a request in a context, as soon as the request is complete. Return 0, so that the caller
 * can make a tail call. */
static inline int ibp_openmpi_request_expect(void *request, struct ibp_context *context)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (IBP_UNLIKELY((uintptr_t)part->complete | (uintptr_t)part->callback))
        return ibp_openmpi_request_expect_slowly(part, context);
    context->pending++;
    part->datum = (uintptr_t)context;
    part->callback = (void *)ibp_openmpi_request_arrived;
    return 0;
}

/* Before a persistent request is started: set the callback that counts the received bytes in a context at
 * completion. */
static inline void ibp_openmpi_request_expect_next(void *request, struct ibp_context *context)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (IBP_UNLIKELY(part->callback != NULL)) return;
    context->pending++;
    part->datum = (uintptr_t)context;
    part->callback = (void *)ibp_openmpi_request_arrived;
}

/* With several threads in MPI: the sum of `pending` over all contexts. To change the sum, the lock must be held. */
extern IBP_INTERNAL uint64_t ibp_openmpi_pending;

/* With several threads in MPI: the functions that Open MPI calls when a request completes, and when it frees the
 * request. */
ibp_openmpi_complete_function ibp_openmpi_request_arrived_among_threads;
ibp_openmpi_release_function ibp_openmpi_release_watched;

int ibp_openmpi_request_expect_among_threads_slowly(void *request, struct ibp_context *context);

/* Like ibp_openmpi_request_expect_next, for several threads in MPI. No other thread may use the request. The lock must
 * be held. */
void ibp_openmpi_request_expect_next_among_threads(void *request, struct ibp_context *context);

/* Like ibp_openmpi_request_expect, for several threads in MPI. `pending` of the context must include the request. */
static inline int ibp_openmpi_request_expect_among_threads(void *request, struct ibp_context *context)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (IBP_UNLIKELY(part->complete == IBP_OPENMPI_COMPLETED) || IBP_UNLIKELY(part->callback != NULL) ||
        IBP_UNLIKELY(part->release != (void *)ibp_openmpi_release))
        return ibp_openmpi_request_expect_among_threads_slowly(request, context);
    part->datum = (uintptr_t)context;
    part->release = (void *)ibp_openmpi_release_watched;
    __atomic_store_n(&part->callback, (void *)ibp_openmpi_request_arrived_among_threads, __ATOMIC_RELEASE);
    return 0;
}

/* Count the message of a completed receive in its context, and decrement the number of pending receives. */
void ibp_openmpi_count_among_threads(const struct ibp_openmpi_status *status, struct ibp_context *context);

/* Decrement the number of pending receives of a context, without counting bytes. */
void ibp_openmpi_end_pending(struct ibp_context *context);

/* Called when the program frees a request, if receives are hooked. */
void ibp_openmpi_request_freed(void *request);

/* Return the number of receives whose completion ibprof did not see. The program freed these requests before
 * completion, or (under MPI_THREAD_MULTIPLE) never waited for them. */
uint64_t ibp_openmpi_requests_missed(void);

#endif
