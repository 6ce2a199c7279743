/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Received bytes in Open MPI: a request shows their number and source only when it completes.
 *
 * When a request completes, Open MPI calls the request's callback, if it is set (`req_complete_cb`). A message of this
 * process to itself shows the offsets of that field and of the status, and a second message tests them
 * (completion_probe.h). If the test fails, received bytes are not recorded, and the recording says so. See
 * docs/decisions/0004.
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

/* Open MPI's values of req_complete; any other value refers to a waiting thread. */
#define IBP_OPENMPI_PENDING ((void *)0)
#define IBP_OPENMPI_COMPLETED ((void *)1)

/* Called when a request completes; must return 0. */
typedef int ibp_openmpi_complete_function(void *request);

/* The part of a request that all components of Open MPI share, from its status on (ompi_request_t of 4.0 to 5.0). */
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
    /* For the callback's use. */
    uint64_t datum;
    ibp_handle communicator;
};

/* The offset of that part in a request. */
extern IBP_INTERNAL size_t ibp_openmpi_request_offset;

static inline struct ibp_openmpi_request *ibp_openmpi_request_of(void *request)
{
    return (struct ibp_openmpi_request *)((char *)request + ibp_openmpi_request_offset);
}

/* The function that frees a request. It may be replaced only while several threads are in MPI, and if the probe
 * succeeded. */
typedef int ibp_openmpi_release_function(void **);
extern IBP_INTERNAL ibp_openmpi_release_function *ibp_openmpi_release;

/* The datum of a callback: received bytes count under this operation, from a rank of this communicator. The datum
 * contains the communicator because not every component of Open MPI writes it into the request. Addresses have at most
 * 48 bits. */
#define IBP_WATCH_KEY_BITS 14
#define IBP_WATCH_OF(communicator, operation, kind)                                                                    \
    ((uint64_t)(communicator) << IBP_WATCH_KEY_BITS | IBP_KEY_OF(operation, kind, IBP_DIRECTION_RECEIVED))
#define IBP_WATCH(communicator, operation) IBP_WATCH_OF(communicator, operation, IBP_KIND_USER)

/* Count received bytes under a watch. */
void ibp_openmpi_count_watched(const struct ibp_openmpi_status *status, uint64_t watch);

/* Count the received bytes of a request under a watch: now if it is complete, otherwise on completion. */
void ibp_openmpi_request_watch(void *request, uint64_t watch);

/* Watch a persistent request that is about to be started; no other thread uses it yet. */
void ibp_openmpi_request_watch_next(void *request, uint64_t watch);

/* Count the received bytes of a request in a context, while one thread at a time is in MPI. The datum is the
 * context. */
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

/* Count the received bytes of a request under a context. Return 0, for a tail call. */
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

/* Expect the bytes of a persistent request that is about to be started. */
static inline void ibp_openmpi_request_expect_next(void *request, struct ibp_context *context)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (IBP_UNLIKELY(part->callback != NULL)) return;
    context->pending++;
    part->datum = (uintptr_t)context;
    part->callback = (void *)ibp_openmpi_request_arrived;
}

/* While several threads are in MPI: number of receives that contexts count as pending. Changed only with the lock. */
extern IBP_INTERNAL uint64_t ibp_openmpi_pending;

/* Functions of such requests, called at completion and at release. */
ibp_openmpi_complete_function ibp_openmpi_request_arrived_among_threads;
ibp_openmpi_release_function ibp_openmpi_release_watched;

int ibp_openmpi_request_expect_among_threads_slowly(void *request, struct ibp_context *context);

/* Count, under a context, the received bytes of a persistent request that is about to be started; no other thread uses
 * it yet. Requires the lock. */
void ibp_openmpi_request_expect_next_among_threads(void *request, struct ibp_context *context);

/* Count the received bytes of a request under a context that counts it as pending: now if it is complete, otherwise on
 * completion. Return 0, for a tail call. */
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

/* Count the message that completed one of a context's pending receives. */
void ibp_openmpi_count_among_threads(const struct ibp_openmpi_status *status, struct ibp_context *context);

/* End a receive that a context counts as pending, without counting bytes. */
void ibp_openmpi_end_pending(struct ibp_context *context);

/* A request is about to be freed. Called only while receives are seen. */
void ibp_openmpi_request_freed(void *request);

/* Return the number of receives whose completion was not seen. They were freed before completion, or, under
 * MPI_THREAD_MULTIPLE, never waited for. */
uint64_t ibp_openmpi_requests_missed(void);

#endif
