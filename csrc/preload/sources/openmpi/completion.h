/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Received bytes in Open MPI. Only a completed request shows how many bytes were received, and from which rank.
 *
 * When a request completes, Open MPI calls its callback (`req_complete_cb`), which ibprof sets. The offsets of this
 * field and of the status are found by a message from this process to itself, and tested by a second message
 * (completion_probe.h). If the test fails, received bytes are not recorded, and a note in the recording says so. See
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

/* Open MPI's values of req_complete. Any other value is a pointer to data of a waiting thread. */
#define IBP_OPENMPI_PENDING ((void *)0)
#define IBP_OPENMPI_COMPLETED ((void *)1)

/* Called when a request completes; must return 0. */
typedef int ibp_openmpi_complete_function(void *request);

/* The members of a request that all components of Open MPI share, from the status on (ompi_request_t of 4.0 to 5.0). */
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
    /* Reserved for the callback. */
    uint64_t datum;
    ibp_handle communicator;
};

/* The offset of these members in a request. */
extern IBP_INTERNAL size_t ibp_openmpi_request_offset;

static inline struct ibp_openmpi_request *ibp_openmpi_request_of(void *request)
{
    return (struct ibp_openmpi_request *)((char *)request + ibp_openmpi_request_offset);
}

/* The function that frees a request. It is replaced only if several threads may be in MPI and the probe succeeded. */
typedef int ibp_openmpi_release_function(void **);
extern IBP_INTERNAL ibp_openmpi_release_function *ibp_openmpi_release;

/* A watch: the datum of a callback. It contains the operation for which received bytes count, and the communicator,
 * because some components of Open MPI do not write the communicator into the request. Addresses have at most 48
 * bits. */
#define IBP_WATCH_KEY_BITS 14
#define IBP_WATCH_OF(communicator, operation, kind)                                                                    \
    ((uint64_t)(communicator) << IBP_WATCH_KEY_BITS | IBP_KEY_OF(operation, kind, IBP_DIRECTION_RECEIVED))
#define IBP_WATCH(communicator, operation) IBP_WATCH_OF(communicator, operation, IBP_KIND_USER)

/* Count received bytes for a watch. */
void ibp_openmpi_count_watched(const struct ibp_openmpi_status *status, uint64_t watch);

/* Count the received bytes of a request for a watch. Count them now if the request is complete, otherwise when it
 * completes. */
void ibp_openmpi_request_watch(void *request, uint64_t watch);

/* Watch a persistent request that is about to be started. No other thread uses it yet. */
void ibp_openmpi_request_watch_next(void *request, uint64_t watch);

/* For one thread at a time in MPI: the callback that counts the received bytes of a request in a context. The datum is
 * the context. */
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

/* Count the received bytes of a request in a context. Count them now if the request is complete, otherwise when it
 * completes. Return 0, for a tail call. */
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

/* Count, in a context, the received bytes of a persistent request that is about to be started. */
static inline void ibp_openmpi_request_expect_next(void *request, struct ibp_context *context)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (IBP_UNLIKELY(part->callback != NULL)) return;
    context->pending++;
    part->datum = (uintptr_t)context;
    part->callback = (void *)ibp_openmpi_request_arrived;
}

/* With several threads in MPI: number of receives that contexts count as pending. Changed only while the lock is
 * held. */
extern IBP_INTERNAL uint64_t ibp_openmpi_pending;

/* With several threads in MPI: the functions that are called when a request completes, and when it is freed. */
ibp_openmpi_complete_function ibp_openmpi_request_arrived_among_threads;
ibp_openmpi_release_function ibp_openmpi_release_watched;

int ibp_openmpi_request_expect_among_threads_slowly(void *request, struct ibp_context *context);

/* Count, in a context, the received bytes of a persistent request that is about to be started. No other thread uses it
 * yet. The lock must be held. */
void ibp_openmpi_request_expect_next_among_threads(void *request, struct ibp_context *context);

/* Count the received bytes of a request in a context that counts the request as pending. Count them now if the request
 * is complete, otherwise when it completes. Return 0, for a tail call. */
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

/* Count the message that completed a pending receive of a context. */
void ibp_openmpi_count_among_threads(const struct ibp_openmpi_status *status, struct ibp_context *context);

/* End a pending receive of a context, without counting bytes. */
void ibp_openmpi_end_pending(struct ibp_context *context);

/* A request is about to be freed. Called only if receives are hooked. */
void ibp_openmpi_request_freed(void *request);

/* Return the number of receives that ibprof did not see completing. The program freed these requests before they
 * completed, or, under MPI_THREAD_MULTIPLE, never waited for them. */
uint64_t ibp_openmpi_requests_missed(void);

#endif
