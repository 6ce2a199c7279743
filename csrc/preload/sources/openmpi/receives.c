/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A receive is counted at completion, because only then size and source are known (completion.h).
 */
#include "platform/system.h"
#include "sources/openmpi/receives.h"
#include "counting/communicator_contexts.h"
#include "counting/context.h"
#include "counting/requests.h"
#include "libmpi/lock.h"
#include "recording/process_state.h"
#include "sources/openmpi/classify.h"
#include "sources/openmpi/completion.h"

/* -- hooks --------------------------------------------------------------------------------------------------------- */

/* Return the context in which a receive is counted; NULL if ibp_openmpi_find_watch must find it. */
static inline struct ibp_context *find_context(struct ibp_context *here, int tag, ibp_handle communicator)
{
    struct ibp_context *context = here;

    if (IBP_UNLIKELY(tag < here->lowest_tag)) return NULL;
    if (communicator == here->received_on) return here;
    context = ibp_context_cached(communicator);
    if (IBP_LIKELY(context != NULL) && IBP_LIKELY(context->receive.operation == here->receive.operation))
        return context;
    return NULL;
}

__attribute__((noinline)) uint64_t ibp_openmpi_find_watch(ibp_handle communicator, int tag)
{
    struct ibp_openmpi_message message;

    if (!ibp_is_active()) return IBP_UNWATCHED;
    message = ibp_openmpi_classify(communicator, 0, tag, IBP_OPERATION_Recv);
    if (ibp_get_here()->received_on && tag >= ibp_get_here()->lowest_tag)
        (void)ibp_context_find_for_receives(communicator, ibp_get_here()->receive.operation);
    if (!ibp_operation_wanted[message.operation]) return IBP_UNWATCHED;
    return IBP_WATCH_OF(communicator, message.operation, message.kind);
}

__attribute__((noinline)) int ibp_openmpi_recv_other(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                                     ibp_handle communicator, struct ibp_openmpi_status *status)
{
    const uint64_t watch = ibp_openmpi_find_watch(communicator, tag);
    const int result = ibp_openmpi_next.recv(buffer, count, datatype, peer, tag, communicator, status);

    if (!result && watch != IBP_UNWATCHED) ibp_openmpi_count_watched(status, watch);
    return result;
}

int ibp_openmpi_hook_recv(void *buffer, size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator,
                          struct ibp_openmpi_status *status)
{
    struct ibp_context *context = find_context(ibp_get_here(), tag, communicator);
    struct ibp_openmpi_status own = {0};
    int result;

    if (!status) status = &own;
    if (IBP_UNLIKELY(!context)) return ibp_openmpi_recv_other(buffer, count, datatype, peer, tag, communicator, status);
    context->pending++;
    result = ibp_openmpi_next.recv(buffer, count, datatype, peer, tag, communicator, status);
    context->pending--;
    if (IBP_LIKELY(!result)) ibp_openmpi_count_received(status, context);
    return result;
}

static __attribute__((noinline)) int irecv_other(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                                 ibp_handle communicator, void **request)
{
    const uint64_t watch = ibp_openmpi_find_watch(communicator, tag);
    struct ibp_context *here = ibp_get_here(), *context = find_context(here, tag, communicator);
    int result;

    if (!context && here->received_on && tag >= here->lowest_tag)
        context = ibp_context_find_for_receives(communicator, here->receive.operation);
    result = ibp_openmpi_next.irecv(buffer, count, datatype, peer, tag, communicator, request);
    if (result || watch == IBP_UNWATCHED) return result;
    /* Count in the context, because the program may free the communicator before the message arrives. The context keeps
     * the communicator's world ranks. */
    if (context && ibp_key_kind(watch) == IBP_KIND_USER &&
        context->receive.operation == ((unsigned)watch & IBP_KEY_OPERATION_MASK))
        return ibp_openmpi_request_expect(*request, context);
    ibp_openmpi_request_watch(*request, watch);
    return 0;
}

int ibp_openmpi_hook_irecv(void *buffer, size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator,
                           void **request)
{
    struct ibp_context *context = find_context(ibp_get_here(), tag, communicator);
    int result;

    if (IBP_UNLIKELY(!context)) return irecv_other(buffer, count, datatype, peer, tag, communicator, request);
    result = ibp_openmpi_next.irecv(buffer, count, datatype, peer, tag, communicator, request);
    IBP_IN_MEMORY(request);
    if (IBP_UNLIKELY(result)) return result;
    return ibp_openmpi_request_expect(*request, context);
}

/* Remember a matched message's communicator, which the message does not contain. */
static void remember_message(void *message, ibp_handle communicator)
{
    if (!ibp_is_active()) return;
    ibp_lock();
    ibp_request_remember(&(struct ibp_request){
        .address = message,
        .role = IBP_REQUEST_MESSAGE,
        .communicator = communicator,
    });
    ibp_unlock();
}

int ibp_openmpi_hook_mprobe(int peer, int tag, ibp_handle communicator, void **message,
                            struct ibp_openmpi_status *status)
{
    const int result = ibp_openmpi_next.mprobe(peer, tag, communicator, message, status);

    if (!result) remember_message(*message, communicator);
    return result;
}

int ibp_openmpi_hook_improbe(int peer, int tag, ibp_handle communicator, int *matched, void **message,
                             struct ibp_openmpi_status *status)
{
    const int result = ibp_openmpi_next.improbe(peer, tag, communicator, matched, message, status);

    if (!result && *matched) remember_message(*message, communicator);
    return result;
}

/* Forget a matched message that is about to be received, and return its communicator; 0 if the message is unknown. */
static ibp_handle take_message(void *message)
{
    const struct ibp_request *matched;
    ibp_handle communicator = 0;

    if (!ibp_is_active()) return 0;
    ibp_lock();
    matched = ibp_request_find(message);
    if (matched && matched->role == IBP_REQUEST_MESSAGE) communicator = matched->communicator;
    ibp_request_forget(message);
    ibp_unlock();
    return communicator;
}

static uint64_t take_watch(void *message)
{
    const ibp_handle communicator = take_message(message);

    return communicator ? ibp_openmpi_find_watch(communicator, 0) : IBP_UNWATCHED;
}

int ibp_openmpi_hook_mrecv(void *buffer, size_t count, ibp_handle datatype, void **message,
                           struct ibp_openmpi_status *status)
{
    const uint64_t watch = take_watch(*message);
    struct ibp_openmpi_status own = {0};
    int result;

    if (!status) status = &own;
    result = ibp_openmpi_next.mrecv(buffer, count, datatype, message, status);
    if (!result && watch != IBP_UNWATCHED) ibp_openmpi_count_watched(status, watch);
    return result;
}

int ibp_openmpi_hook_imrecv(void *buffer, size_t count, ibp_handle datatype, void **message, void **request)
{
    const uint64_t watch = take_watch(*message);
    const int result = ibp_openmpi_next.imrecv(buffer, count, datatype, message, request);

    if (!result && watch != IBP_UNWATCHED) ibp_openmpi_request_watch(*request, watch);
    return result;
}
