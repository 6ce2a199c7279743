/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/starts.h"
#include "counting/calls.h"
#include "counting/count.h"
#include "counting/current_call.h"
#include "counting/requests.h"
#include "counting/times.h"
#include "libmpi/datatypes.h"
#include "libmpi/lock.h"
#include "recording/process_state.h"
#include "sources/openmpi/classify.h"
#include "sources/openmpi/hooked_starts.h"

static const uint16_t persistent_operation[IBP_OPENMPI_MODES] = IBP_OPENMPI_BY_MODE(
    IBP_OPERATION_Send_init, IBP_OPERATION_Ssend_init, IBP_OPERATION_Bsend_init, IBP_OPERATION_Rsend_init);

/* Return whether the application, rather than Open MPI, starts a new request. Open MPI starts the requests of
 * collectives and of partitioned messages. */
static bool is_started_by_user(const struct ibp_openmpi_message *message)
{
    return !ibp_current_call.operation && message->kind == IBP_KIND_USER;
}

/* Set ibp_times_large_requests for a large message or a derived datatype, because MPI_Start copies large messages
 * outside of the progress loop. */
static void note_large(size_t count, ibp_handle datatype)
{
    if (count >= IBP_TIMES_LARGE || !ibp_datatype_is_object(datatype)) ibp_times_large_requests = true;
}

/* Remember a request if IBPROF selects its operation. */
static void remember(struct ibp_request request, const struct ibp_openmpi_message *message)
{
    const bool is_wanted = ibp_operation_wanted[request.operation], is_user = is_started_by_user(message);

    if (is_wanted && is_user)
        request.has_hook = ibp_openmpi_hook_own_start(request.address);
    else
        ibp_openmpi_unhook_own_start(request.address);
    ibp_lock();
    if (is_wanted)
        ibp_request_remember(&request);
    else
        ibp_request_forget(request.address);
    if (is_wanted && is_user && !request.has_hook) ibp_requests_show_starts = false;
    ibp_unlock();
}

int ibp_openmpi_hook_isend_init(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                                ibp_handle communicator, void **request)
{
    const int result = ibp_openmpi_next.isend_init(buffer, count, datatype, peer, tag, mode, communicator, request);
    const unsigned otherwise = ibp_openmpi_mode_operation(persistent_operation, mode);

    if (!result && ibp_is_active()) {
        const struct ibp_openmpi_message message = ibp_openmpi_classify(communicator, peer, tag, otherwise);

        const unsigned operation = ibp_counting ? message.operation : otherwise;

        if (is_started_by_user(&message)) note_large(count, datatype);
        remember(
            (struct ibp_request){
                .address = *request,
                .role = IBP_REQUEST_SEND,
                .operation = (uint16_t)operation,
                .kind = (uint8_t)message.kind,
                .peer = message.peer,
                .bytes = ibp_mpi_bytes(count, datatype),
                .context = ibp_context_sending(operation),
                .origin = IBP_NO_ORIGIN,
            },
            &message);
    }
    return result;
}

int ibp_openmpi_hook_irecv_init(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                ibp_handle communicator, void **request)
{
    const int result = ibp_openmpi_next.irecv_init(buffer, count, datatype, peer, tag, communicator, request);

    if (!result && ibp_is_active()) {
        const struct ibp_openmpi_message message = ibp_openmpi_classify(communicator, 0, tag, IBP_OPERATION_Recv_init);
        const uint16_t operation = ibp_current_call.operation ? ibp_current_call.operation : IBP_OPERATION_Recv_init;

        if (is_started_by_user(&message)) note_large(count, datatype);
        remember(
            (struct ibp_request){
                .address = *request,
                .role = IBP_REQUEST_RECEIVE,
                .operation = operation,
                .communicator = communicator,
                .context =
                    communicator == ibp_mpi.world && !ibp_threads_multiple ? &ibp_calls[operation].context : NULL,
            },
            &message);
    }
    return result;
}
