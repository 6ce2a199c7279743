/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/receives_among_threads.h"
#include "counting/communicator_contexts.h"
#include "libmpi/lock.h"
#include "sources/openmpi/classify.h"
#include "sources/openmpi/completion.h"
#include "sources/openmpi/receives.h"

/* Return the context of a receive, which counts it as pending; NULL where it must be classified. */
static inline struct ibp_context *take_context(int tag, ibp_handle communicator)
{
    const unsigned operation = ibp_openmpi_operation_among_threads(tag, IBP_OPERATION_Recv);
    struct ibp_context *context;

    if (IBP_UNLIKELY(!operation)) return NULL;
    ibp_lock_among_threads();
    context = ibp_context_cached(communicator);
    if (IBP_UNLIKELY(!context) || IBP_UNLIKELY(context->receive.operation != operation))
        context = ibp_context_find_for_receives(communicator, operation);
    if (IBP_LIKELY(context != NULL)) {
        context->pending++;
        ibp_openmpi_pending++;
    }
    ibp_unlock_among_threads();
    return context;
}

int ibp_openmpi_hook_recv_among_threads(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                        ibp_handle communicator, struct ibp_openmpi_status *status)
{
    struct ibp_context *context = take_context(tag, communicator);
    struct ibp_openmpi_status own = {0};
    int result;

    if (!status) status = &own;
    if (IBP_UNLIKELY(!context)) return ibp_openmpi_recv_other(buffer, count, datatype, peer, tag, communicator, status);
    result = ibp_openmpi_next.recv(buffer, count, datatype, peer, tag, communicator, status);
    if (IBP_LIKELY(!result))
        ibp_openmpi_count_among_threads(status, context);
    else
        ibp_openmpi_end_pending(context);
    return result;
}

int ibp_openmpi_hook_irecv_among_threads(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                         ibp_handle communicator, void **request)
{
    struct ibp_context *context = take_context(tag, communicator);
    int result;

    if (IBP_UNLIKELY(!context))
        return ibp_openmpi_irecv_other(buffer, count, datatype, peer, tag, communicator, request);
    result = ibp_openmpi_next.irecv(buffer, count, datatype, peer, tag, communicator, request);
    IBP_IN_MEMORY(request);
    if (IBP_LIKELY(!result)) return ibp_openmpi_request_expect_among_threads(*request, context);
    ibp_openmpi_end_pending(context);
    return result;
}
