/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Open MPI's collectives start their persistent requests through the table. MPI_Start of the application does not; its
 * wrapper is in calls/persistent_requests.c.
 */
#include "platform/system.h"
#include "sources/openmpi/persistent.h"
#include "counting/counters.h"
#include "counting/current_call.h"
#include "counting/requests.h"
#include "libmpi/communicators.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "recording/process_state.h"
#include "sources/openmpi/classify.h"
#include "sources/openmpi/completion.h"
#include "sources/openmpi/tags.h"

#include <string.h>

static const uint16_t persistent_operation[IBP_OPENMPI_MODES] = IBP_OPENMPI_BY_MODE(
    IBP_OPERATION_Send_init, IBP_OPERATION_Ssend_init, IBP_OPERATION_Bsend_init, IBP_OPERATION_Rsend_init);

int ibp_openmpi_hook_isend_init(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                                ibp_handle communicator, void **request)
{
    const int result = ibp_openmpi_next.isend_init(buffer, count, datatype, peer, tag, mode, communicator, request);

    if (!result && ibp_is_active()) {
        const struct ibp_openmpi_message message =
            ibp_openmpi_classify(communicator, peer, tag, ibp_openmpi_mode_operation(persistent_operation, mode));

        ibp_lock();
        ibp_request_remember(&(struct ibp_request){
            .address = *request,
            .role = IBP_REQUEST_SEND,
            .operation =
                (uint16_t)(ibp_counting ? message.operation : ibp_openmpi_mode_operation(persistent_operation, mode)),
            .kind = (uint8_t)message.kind,
            .peer = message.peer,
            .bytes = ibp_mpi_bytes(count, datatype),
        });
        ibp_unlock();
    }
    return result;
}

int ibp_openmpi_hook_irecv_init(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                ibp_handle communicator, void **request)
{
    const int result = ibp_openmpi_next.irecv_init(buffer, count, datatype, peer, tag, communicator, request);

    if (!result && ibp_is_active()) {
        ibp_lock();
        ibp_communicator_find(communicator);
        ibp_request_remember(&(struct ibp_request){
            .address = *request,
            .role = IBP_REQUEST_RECEIVE,
            .operation = ibp_current_call.operation ? ibp_current_call.operation : IBP_OPERATION_Recv_init,
            .communicator = communicator,
        });
        ibp_unlock();
    }
    return result;
}

/* Count a persistent request that is about to be started: what it sends now, what it receives on completion. */
static void count_start(void *address)
{
    struct ibp_request request;
    unsigned operation;

    if (!ibp_request_copy(address, &request)) return;
    if (request.role != IBP_REQUEST_SEND && request.role != IBP_REQUEST_RECEIVE) return;
    operation =
        ibp_openmpi_starting_operation(ibp_current_call.operation ? ibp_current_call.operation : request.operation);
    if (!ibp_operation_wanted[operation]) return;
    if (request.role == IBP_REQUEST_SEND)
        ibp_count(operation, (enum ibp_kind)request.kind, IBP_DIRECTION_SENT, request.peer, request.bytes);
    else
        ibp_openmpi_request_watch_next(address, IBP_WATCH(request.communicator, operation));
}

void ibp_openmpi_before_start(size_t count, void **requests)
{
    for (size_t i = 0; i < count; i++) count_start(requests[i]);
}

/* Open MPI replaces a request that it still uses by another one. */
void ibp_openmpi_after_start(size_t count, void **requests, void *const *before)
{
    for (size_t i = 0; i < count; i++) {
        const struct ibp_request *known;
        struct ibp_request request;

        if (requests[i] == before[i]) continue;
        ibp_lock();
        known = ibp_request_find(before[i]);
        if (known) {
            request = *known;
            request.address = requests[i];
            ibp_request_forget(before[i]);
            ibp_request_remember(&request);
        }
        ibp_unlock();
    }
}

/* Start requests of collectives; those that the application starts are counted already. */
int ibp_openmpi_hook_start(size_t count, void **requests)
{
    enum { AT_ONCE = 64 };
    int result = 0;

    if (!ibp_is_active() || ibp_current_call.starts_request) return ibp_openmpi_next.start(count, requests);
    for (size_t done = 0; done < count && !result; done += AT_ONCE) {
        const size_t some = count - done < AT_ONCE ? count - done : AT_ONCE;
        void *before[AT_ONCE];

        memcpy(before, requests + done, some * sizeof *before);
        ibp_openmpi_before_start(some, requests + done);
        result = ibp_openmpi_next.start(some, requests + done);
        if (!result) ibp_openmpi_after_start(some, requests + done, before);
    }
    return result;
}
