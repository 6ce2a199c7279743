/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/receives.h"
#include "counting/communicator_contexts.h"
#include "libmpi/lock.h"
#include "sources/openmpi/classify.h"
#include "sources/openmpi/completion.h"

/* Return the cached context of a receive, and increment its number of pending receives. Return NULL if no context is
 * cached, if the receive must be classified (sources/openmpi/classify.h), or if the lock is not free. */
static inline struct ibp_context *take_cached(int tag, ibp_handle communicator)
{
    const unsigned operation = ibp_openmpi_operation_among_threads(tag, IBP_OPERATION_Recv);
    struct ibp_context *context;

    if (IBP_UNLIKELY(!operation) || !ibp_try_lock_among_threads()) return NULL;
    context = ibp_context_cached(communicator);
    if (IBP_LIKELY(context != NULL) && IBP_LIKELY(context->receive.operation == operation)) {
        context->pending++;
        ibp_openmpi_pending++;
    } else {
        context = NULL;
    }
    ibp_unlock_among_threads();
    return context;
}

/* Like take_cached, but also for a context that is not cached. Return NULL if the receive must be classified. */
static struct ibp_context *take_context(int tag, ibp_handle communicator)
{
    const unsigned operation = ibp_openmpi_operation_among_threads(tag, IBP_OPERATION_Recv);
    struct ibp_context *context;

    if (!operation) return NULL;
    ibp_lock_among_threads();
    context = ibp_context_find_for_receives(communicator, operation);
    if (context) {
        context->pending++;
        ibp_openmpi_pending++;
    }
    ibp_unlock_among_threads();
    return context;
}

static int recv_in(struct ibp_context *context, void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                   ibp_handle communicator, struct ibp_openmpi_status *status)
{
    struct ibp_openmpi_status own = {0};
    int result;

    if (!status) status = &own;
    result = ibp_openmpi_next.recv(buffer, count, datatype, peer, tag, communicator, status);
    if (IBP_LIKELY(!result))
        ibp_openmpi_count_among_threads(status, context);
    else
        ibp_openmpi_end_pending(context);
    return result;
}

static __attribute__((noinline)) int recv_other(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                                ibp_handle communicator, struct ibp_openmpi_status *status)
{
    struct ibp_context *context = take_context(tag, communicator);
    struct ibp_openmpi_status own = {0};

    if (!status) status = &own;
    if (!context) return ibp_openmpi_recv_other(buffer, count, datatype, peer, tag, communicator, status);
    return recv_in(context, buffer, count, datatype, peer, tag, communicator, status);
}

int ibp_openmpi_hook_recv_among_threads(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                        ibp_handle communicator, struct ibp_openmpi_status *status)
{
    struct ibp_context *context = take_cached(tag, communicator);

    if (IBP_UNLIKELY(!context)) return recv_other(buffer, count, datatype, peer, tag, communicator, status);
    return recv_in(context, buffer, count, datatype, peer, tag, communicator, status);
}

/* Let Open MPI post a receive whose context is not cached. If the communicator has no context, the classification of
 * the receive creates a context. Count the receive in the context, because the program may free the communicator before
 * the message arrives. */
static __attribute__((noinline)) int irecv_other(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                                 ibp_handle communicator, void **request)
{
    struct ibp_context *context = take_context(tag, communicator);
    const uint64_t watch = context ? IBP_UNWATCHED : ibp_openmpi_find_watch(communicator, tag);
    int result;

    if (watch != IBP_UNWATCHED) context = take_context(tag, communicator);
    result = ibp_openmpi_next.irecv(buffer, count, datatype, peer, tag, communicator, request);
    if (context && !result) return ibp_openmpi_request_expect_among_threads(*request, context);
    if (context) ibp_openmpi_end_pending(context);
    if (!result && watch != IBP_UNWATCHED) ibp_openmpi_request_watch(*request, watch);
    return result;
}

int ibp_openmpi_hook_irecv_among_threads(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                         ibp_handle communicator, void **request)
{
    struct ibp_context *context = take_cached(tag, communicator);
    int result;

    if (IBP_UNLIKELY(!context)) return irecv_other(buffer, count, datatype, peer, tag, communicator, request);
    result = ibp_openmpi_next.irecv(buffer, count, datatype, peer, tag, communicator, request);
    IBP_IN_MEMORY(request);
    if (IBP_LIKELY(!result)) return ibp_openmpi_request_expect_among_threads(*request, context);
    ibp_openmpi_end_pending(context);
    return result;
}
