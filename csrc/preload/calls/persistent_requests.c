/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of the calls that start, cancel and free requests. In Open MPI, hooks count the starts of point-to-point
 * requests (sources/openmpi/starts.h).
 */
#include "platform/system.h"
#include "calls/sampled_calls.h"
#include "calls/sampled_messages.h"
#include "calls/wrapper.h"
#include "counting/count.h"
#include "counting/current_call.h"
#include "counting/requests.h"
#include "counting/times.h"
#include "libmpi/datatypes.h"
#include "libmpi/handles.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "sources/source.h"

#include <stdbool.h>

/* Enter MPI_Start. `communicator`: the communicator of a persistent collective; 0 for all other requests. */
static void enter_start(struct ibp_call *call, ibp_handle communicator)
{
    const bool takes_tag = communicator && ibp_source->starts_take_tags && ibp_source->starts_take_tags();

    ibp_enter(call, (struct ibp_current_call){
                        .kind = IBP_CALL_PERSISTENT,
                        .communicator = takes_tag ? (long)communicator : 0,
                        .starts_request = true,
                    });
    if (takes_tag) ibp_source->before_tag();
}

/* In an array, start all requests before the first request that is in the table of requests. Return the number of
 * started requests. Used if the source has no function `start`. */
static size_t start_unknown(ibp_start_function *start_all, size_t count, void **requests, int *result)
{
    struct ibp_request known;
    size_t unknown = 0;

    while (unknown < count && !ibp_request_copy(ibp_mpi_request(requests, unknown), &known)) unknown++;
    if (!unknown) return 0;
    enter_start(&ibp_calls[IBP_OPERATION_NONE], 0);
    *result = start_all((int)unknown, requests);
    ibp_leave();
    return unknown;
}

/* Start one request by a separate call: with Open MPI, a partitioned request or persistent collective; with other MPIs,
 * a request in the table of requests. The messages count for the call that created the request, so the creating call
 * becomes the current call. */
static int start_alone(ibp_start_function *start_all, void **request)
{
    void *before = ibp_mpi_request(request, 0);
    int result;

    enter_start(ibp_request_call(before), ibp_request_communicator(before));
    if (ibp_source->source) ibp_request_count_parts(before);
    result = start_all(1, request);
    ibp_leave();
    if (!result) ibp_request_demand(before);
    return result;
}

/* Start requests, several at once if possible. */
static int start_each(ibp_start_function *start_all, size_t count, void **requests)
{
    size_t started;
    int result = 0;

    for (;;) {
        started = IBP_LIKELY(ibp_source->start != NULL) ? ibp_source->start(start_all, count, requests, &result)
                                                        : start_unknown(start_all, count, requests, &result);
        if (IBP_UNLIKELY(!started)) {
            result = start_alone(start_all, requests);
            started = 1;
        }
        if (IBP_LIKELY(count == started) || result) return result;
        count -= started;
        requests = ibp_mpi_requests_from(requests, started);
    }
}

/* Return whether this thread is inside an outer MPI_Start, for example if another tool's wrapper of MPI_Start calls
 * PMPI_Start. The outer call has then counted the request. */
static inline bool is_within_start(void)
{
    return ibp_current_call.starts_request && ibp_stack_end < ibp_current_call.frame;
}

static inline bool is_to_be_seen(void)
{
    if (IBP_UNLIKELY(ibp_mpi.is_behind_layer) || IBP_UNLIKELY(is_within_start())) return false;
    return IBP_LIKELY(ibp_get_here()->is_outside) || (ibp_is_active() && !ibp_is_within_call());
}

/* If a start needs no work except counting, count the start and return true. Otherwise return false. */
static inline bool is_short_start(struct ibp_call *call, void **requests, int count)
{
    if (IBP_UNLIKELY(!ibp_get_here()->is_outside) || IBP_UNLIKELY(!call) || IBP_UNLIKELY(!call->time_at_random) ||
        IBP_UNLIKELY(ibp_times_large_requests) || IBP_UNLIKELY(!ibp_requests_show_starts) ||
        IBP_UNLIKELY(!call->until_timed) || !requests || !ibp_starts_are_unsampled(requests, count))
        return false;
    return ibp_time_at_random(call);
}

/* `next_...`: the next function of the wrapper; before the first call, a function that finds the next function.
 * Usually, the wrapper ends with a jump to `next_...`. */
#define START_WRAPPER(exported, of_operation, parameters, arguments, start_all, count, requests)                       \
    static int find_##exported parameters;                                                                             \
    static int(*next_##exported) parameters = find_##exported;                                                         \
    static int find_##exported parameters                                                                              \
    {                                                                                                                  \
        void *found = ibp_mpi_next(#exported);                                                                         \
                                                                                                                       \
        if (!found) return IBP_MISSING_CALL;                                                                           \
        memcpy(&next_##exported, &found, sizeof found);                                                                \
        return next_##exported arguments;                                                                              \
    }                                                                                                                  \
    static __attribute__((noinline)) int see_##exported parameters                                                     \
    {                                                                                                                  \
        if (!(requests) || (count) <= 0 || !is_to_be_seen()) return next_##exported arguments;                         \
        return start_each(start_all, (size_t)(count), requests);                                                       \
    }                                                                                                                  \
    static __attribute__((noinline)) int time_##exported parameters                                                    \
    {                                                                                                                  \
        struct ibp_timing timing;                                                                                      \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_NAMES_PERSONALITY;                                                                                         \
        if (is_short_start(IBP_CALL_HERE_CACHED(of_operation), requests, count)) return next_##exported arguments;     \
        if (ibp_is_within_call() || is_within_start()) return see_##exported arguments;                                \
        ibp_sampled_starts(requests, count, IBP_CALL_HERE(of_operation));                                              \
        ibp_timing_begin(&timing, IBP_CALL_HERE(of_operation), ibp_times_large_requests);                              \
        result = IBP_LIKELY(ibp_requests_show_starts) ? next_##exported arguments : see_##exported arguments;          \
        ibp_timing_end(&timing);                                                                                       \
        return result;                                                                                                 \
    }                                                                                                                  \
    IBP_EXPORT int exported parameters;                                                                                \
    IBP_EXPORT int exported parameters                                                                                 \
    {                                                                                                                  \
        if (IBP_UNLIKELY(ibp_times_recorded)) return time_##exported arguments;                                        \
        return IBP_LIKELY(ibp_requests_show_starts) ? next_##exported arguments : see_##exported arguments;            \
    }

#define START(exported)                                                                                                \
    static int one_##exported(int count, void **requests);                                                             \
    START_WRAPPER(exported, IBP_OPERATION_Start, (void **request), (request), one_##exported, 1, request)              \
    static int one_##exported(int count, void **requests)                                                              \
    {                                                                                                                  \
        (void)count;                                                                                                   \
        return next_##exported(requests);                                                                              \
    }

START(MPI_Start)
START(PMPI_Start)

#define START_ALL(exported)                                                                                            \
    START_WRAPPER(exported, IBP_OPERATION_Startall, (int count, void **requests), (count, requests), next_##exported,  \
                  count, requests)

START_ALL(MPI_Startall)
START_ALL(PMPI_Startall)

static void forget(void *request)
{
    if (ibp_source->forget_request) ibp_source->forget_request(request);
    ibp_sampled_request_freed((uintptr_t)request);
    ibp_request_freed(request);
}

#define REQUEST_FREE(exported)                                                                                         \
    IBP_DEFINE(exported, void **request)                                                                               \
    {                                                                                                                  \
        static int (*next)(void **);                                                                                   \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (ibp_is_active() && !ibp_mpi.is_behind_layer) forget(ibp_mpi_request(request, 0));                          \
        return next(request);                                                                                          \
    }

#define CANCEL(exported)                                                                                               \
    IBP_DEFINE(exported, void **request)                                                                               \
    {                                                                                                                  \
        static int (*next)(void **);                                                                                   \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (ibp_is_active() && !ibp_mpi.is_behind_layer && request)                                                    \
            ibp_sampled_request_cancelled((uintptr_t)ibp_mpi_request(request, 0));                                     \
        return next(request);                                                                                          \
    }

CANCEL(MPI_Cancel)
CANCEL(PMPI_Cancel)

REQUEST_FREE(MPI_Request_free)
REQUEST_FREE(PMPI_Request_free)

/* When a partitioned send starts, ibprof counts the bytes of all partitions, because it does not see which messages
 * contain partitions. Partitioned receives are not entered in the table of requests: Open MPI posts another request,
 * which receives a description of the partitions. */
#define PARTITIONED_INIT(exported, of_operation, buffer_type, is_send)                                                 \
    IBP_DEFINE(exported, buffer_type buffer, int partitions, int64_t count, ibp_handle datatype, int peer, int tag,    \
               ibp_handle communicator, ibp_handle info, void **request)                                               \
    {                                                                                                                  \
        static int (*next)(buffer_type, int, int64_t, ibp_handle, int, int, ibp_handle, ibp_handle, void **);          \
        struct ibp_call *call;                                                                                         \
        uint64_t bytes;                                                                                                \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (!is_to_be_seen())                                                                                          \
            return next(buffer, partitions, count, datatype, peer, tag, communicator, info, request);                  \
        call = IBP_CALL_HERE(of_operation);                                                                            \
        ibp_enter(call, (struct ibp_current_call){.kind = IBP_CALL_BLOCKING});                                         \
        result = next(buffer, partitions, count, datatype, peer, tag, communicator, info, request);                    \
        ibp_leave();                                                                                                   \
        if (result) return result;                                                                                     \
        ibp_counts_arguments = true;                                                                                   \
        bytes = ibp_mpi_bytes((uint64_t)partitions * (uint64_t)count, datatype);                                       \
        ibp_partitioned_init(of_operation, &(struct ibp_posted_receive){IBP_HANDLE(communicator), peer, tag},          \
                             (uintptr_t)ibp_mpi_request(request, 0), bytes);                                           \
        if (is_send && peer >= 0)                                                                                      \
            ibp_request_keep_send(ibp_mpi_request(request, 0), IBP_HANDLE(communicator), peer, bytes, call);           \
        return result;                                                                                                 \
    }

PARTITIONED_INIT(MPI_Psend_init, IBP_OPERATION_Psend_init, const void *, true)
PARTITIONED_INIT(PMPI_Psend_init, IBP_OPERATION_Psend_init, const void *, true)
PARTITIONED_INIT(MPI_Precv_init, IBP_OPERATION_Precv_init, void *, false)
PARTITIONED_INIT(PMPI_Precv_init, IBP_OPERATION_Precv_init, void *, false)
