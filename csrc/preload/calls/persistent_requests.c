/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of the calls that start and free persistent requests. In Open MPI MPI_Start calls functions of the request,
 * which bypasses the table that the source hooks.
 */
#include "platform/system.h"
#include "calls/wrapper.h"
#include "counting/current_call.h"
#include "counting/requests.h"
#include "libmpi/handles.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "sources/source.h"

#include <stdbool.h>

typedef int start_all_function(int, void **);

/* Start a request whose messages do not show its operation, or several requests whose messages do. */
static int start_some(start_all_function *start_all, int count, void **requests)
{
    enum { ON_STACK = 256 };
    void *before[ON_STACK];
    const unsigned operation = ibp_request_operation(ibp_mpi_request(requests, 0));
    const bool watched = operation == IBP_OPERATION_NONE || ibp_labels_sends;
    int result;

    for (int i = 0; i < count; i++) before[i] = ibp_mpi_request(requests, (size_t)i);
    ibp_enter((struct ibp_current_call){
        .operation = (uint16_t)operation,
        .kind = IBP_CALL_PERSISTENT,
        .starts_request = true,
    });
    if (watched) ibp_source->before_start((size_t)count, requests);
    result = start_all(count, requests);
    if (!result && watched && ibp_source->after_start) ibp_source->after_start((size_t)count, requests, before);
    ibp_leave();
    return result;
}

/* Start requests in groups. A request whose messages do not show its operation is started alone, since the call that
 * sends them identifies it. */
static int start_each(start_all_function *start_all, int count, void **requests)
{
    enum { AT_ONCE = 256 };
    int result = 0;

    for (int first = 0, after; first < count && !result; first = after) {
        after = first + 1;
        if (ibp_request_operation(ibp_mpi_request(requests, (size_t)first)) == IBP_OPERATION_NONE)
            while (after < count && after - first < AT_ONCE &&
                   ibp_request_operation(ibp_mpi_request(requests, (size_t)after)) == IBP_OPERATION_NONE)
                after++;
        result = start_some(start_all, after - first, ibp_mpi_requests_from(requests, (size_t)first));
    }
    return result;
}

static bool is_to_be_seen(void)
{
    return ibp_is_active() && !ibp_is_within_call() && ibp_source->before_start;
}

#define START(exported)                                                                                                \
    static int (*next_##exported)(void **);                                                                            \
    static int one_##exported(int count, void **requests)                                                              \
    {                                                                                                                  \
        (void)count;                                                                                                   \
        return next_##exported(requests);                                                                              \
    }                                                                                                                  \
    IBP_DEFINE(exported, void **request)                                                                               \
    {                                                                                                                  \
        IBP_FIND_NEXT(next_##exported, #exported);                                                                     \
        if (!request || !is_to_be_seen()) return next_##exported(request);                                             \
        return start_some(one_##exported, 1, request);                                                                 \
    }

START(MPI_Start)
START(PMPI_Start)

#define START_ALL(exported)                                                                                            \
    IBP_DEFINE(exported, int count, void **requests)                                                                   \
    {                                                                                                                  \
        static start_all_function *next;                                                                               \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (!requests || count <= 0 || !is_to_be_seen()) return next(count, requests);                                 \
        return start_each(next, count, requests);                                                                      \
    }

START_ALL(MPI_Startall)
START_ALL(PMPI_Startall)

#define REQUEST_FREE(exported)                                                                                         \
    IBP_DEFINE(exported, void **request)                                                                               \
    {                                                                                                                  \
        static int (*next)(void **);                                                                                   \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (ibp_is_active()) ibp_request_freed(ibp_mpi_request(request, 0));                                           \
        return next(request);                                                                                          \
    }

REQUEST_FREE(MPI_Request_free)
REQUEST_FREE(PMPI_Request_free)

/* The bytes of all partitions are counted when the send starts: the order and form of the parts cannot be seen. The
 * request of a receive receives nothing, but Open MPI posts another one for what the sender says about the parts. */
#define PARTITIONED_INIT(exported, of_operation, buffer_type, is_send)                                                 \
    IBP_DEFINE(exported, buffer_type buffer, int partitions, int64_t count, ibp_handle datatype, int peer, int tag,    \
               ibp_handle communicator, ibp_handle info, void **request)                                               \
    {                                                                                                                  \
        static int (*next)(buffer_type, int, int64_t, ibp_handle, int, int, ibp_handle, ibp_handle, void **);          \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (!is_to_be_seen())                                                                                          \
            return next(buffer, partitions, count, datatype, peer, tag, communicator, info, request);                  \
        ibp_enter((struct ibp_current_call){.operation = of_operation, .kind = IBP_CALL_BLOCKING});                    \
        result = next(buffer, partitions, count, datatype, peer, tag, communicator, info, request);                    \
        ibp_leave();                                                                                                   \
        if (is_send && !result && peer >= 0)                                                                           \
            ibp_request_keep_send(ibp_mpi_request(request, 0), IBP_HANDLE(communicator), peer,                         \
                                  ibp_mpi_bytes((uint64_t)partitions * (uint64_t)count, datatype), of_operation);      \
        return result;                                                                                                 \
    }

PARTITIONED_INIT(MPI_Psend_init, IBP_OPERATION_Psend_init, const void *, true)
PARTITIONED_INIT(PMPI_Psend_init, IBP_OPERATION_Psend_init, const void *, true)
PARTITIONED_INIT(MPI_Precv_init, IBP_OPERATION_Precv_init, void *, false)
PARTITIONED_INIT(PMPI_Precv_init, IBP_OPERATION_Precv_init, void *, false)
