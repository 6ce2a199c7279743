/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/starts.h"
#include "counting/communicator_contexts.h"
#include "counting/count.h"
#include "counting/counters.h"
#include "counting/current_call.h"
#include "counting/requests.h"
#include "counting/periodic.h"
#include "libmpi/lock.h"
#include "recording/process_state.h"
#include "sources/openmpi/completion.h"
#include "sources/openmpi/hooked_starts.h"

/* -- counting requests --------------------------------------------------------------------------------------------- */

/* Return the context of a persistent receive; NULL if it is not cached. Call this only while at most one thread can be
 * in MPI. */
static inline struct ibp_context *context_known(const struct ibp_request *request)
{
    struct ibp_context *context = request->context;

    if (IBP_LIKELY(context != NULL)) return context;
    context = ibp_context_cached(request->communicator);
    return IBP_LIKELY(context != NULL) && IBP_LIKELY(context->receive.operation == request->operation) ? context : NULL;
}

/* Count a request before its start. If count_any must count it, return false without counting. */
static inline bool count_known(void *address)
{
    struct ibp_request *request = ibp_request_at_hash(address);
    struct ibp_context *context;

    if (IBP_UNLIKELY(request->address != address)) return false;
    if (request->role == IBP_REQUEST_SEND) {
        if (IBP_UNLIKELY(request->context->send.origin != request->origin)) return false;
        ibp_add(request->amount, request->bytes);
        *request->bin += 1;
        return true;
    }
    if (IBP_UNLIKELY(request->role != IBP_REQUEST_RECEIVE) || IBP_UNLIKELY(!(context = context_known(request))))
        return false;
    ibp_openmpi_request_expect_next(address, context);
    return true;
}

static void count_send(struct ibp_request *request)
{
    const uint32_t origin = ibp_context_origin(request->context, &request->context->send);
    const uint64_t key = IBP_SLOT_KEY(origin, request->kind, IBP_DIRECTION_SENT, request->peer);
    const struct ibp_slot *slot = ibp_slot_made(key);

    request->amount = slot->amount;
    request->bin = slot->bins + ibp_size_bin(request->bytes);
    request->origin = origin;
    ibp_add(request->amount, request->bytes);
    *request->bin += 1;
}

static void expect_receive(struct ibp_request *request, unsigned operation)
{
    struct ibp_context *context = request->context;

    if (!context) context = ibp_context_find_for_receives(request->communicator, operation);
    if (context && context->receive.operation == operation && ibp_threads_multiple)
        ibp_openmpi_request_expect_next_among_threads(request->address, context);
    else if (context && context->receive.operation == operation)
        ibp_openmpi_request_expect_next(request->address, context);
    else
        ibp_openmpi_request_watch_next(request->address, IBP_WATCH(request->communicator, operation));
}

/* Before a request starts: count a send now, and let a receive be counted when it completes. `within`: operation of the
 * current call; 0 outside of calls. Copy the entry of the request to `copy`; if the request is unknown, set the copy's
 * role to 0. */
static __attribute__((noinline)) void count_any(void *address, unsigned within, struct ibp_request *copy)
{
    struct ibp_request *request;
    unsigned operation;

    copy->role = 0;
    ibp_lock();
    request = ibp_request_find(address);
    if (request) {
        *copy = *request;
        operation = within ? within : request->operation;
        if (!ibp_counting || !ibp_operation_wanted[operation])
            ;
        else if (request->role == IBP_REQUEST_SEND && within)
            ibp_count_locked(within, (enum ibp_kind)request->kind, IBP_DIRECTION_SENT, request->peer, request->bytes);
        else if (request->role == IBP_REQUEST_SEND)
            count_send(request);
        else if (request->role == IBP_REQUEST_RECEIVE)
            expect_receive(request, operation);
    }
    ibp_unlock();
}

/* -- starting ------------------------------------------------------------------------------------------------------ */

/* If Open MPI still uses a request, MPI_Start replaces it with a new request. Hook the new request, and add it to the
 * table of requests. Keep the entry and the hook of the former request, because another thread may have entered a new
 * request at the former request's address. */
static __attribute__((noinline)) void follow(struct ibp_request before, void *request)
{
    if (!before.role) return;
    before.address = request;
    if (before.has_hook) before.has_hook = ibp_openmpi_hook_own_start(request);
    ibp_lock();
    ibp_request_remember(&before);
    ibp_unlock();
}

/* Call `follow` for each request that MPI_Start has started in place of the given request. Return `result`, so that
 * callers can make a tail call. */
static __attribute__((noinline)) int follow_all(size_t count, void **requests, void *const *before, int result)
{
    for (size_t i = 0; i < count; i++) {
        struct ibp_request known = {0};

        if (requests[i] != before[i] && ibp_request_copy(before[i], &known)) follow(known, requests[i]);
    }
    return result;
}

static __attribute__((noinline)) int start_each(size_t count, void **requests, unsigned within)
{
    int result = 0;

    if (!ibp_is_active()) return ibp_openmpi_next.start(count, requests);
    if (ibp_periodic_in_messages) ibp_periodic_check_now();
    for (size_t i = 0; i < count && !result; i++) {
        void *const before = requests[i];
        struct ibp_request known;

        count_any(before, within, &known);
        result = ibp_openmpi_next.start(1, &requests[i]);
        if (IBP_UNLIKELY(requests[i] != before)) follow(known, requests[i]);
    }
    return result;
}

#define AT_ONCE 64

/* Start requests. The first `counted` requests are already counted. */
static __attribute__((noinline)) int start_from(size_t counted, size_t count, void **requests)
{
    void *before[AT_ONCE];
    struct ibp_request known;

    for (size_t i = 0; i < count; i++) before[i] = requests[i];
    for (size_t i = counted; i < count; i++) count_any(before[i], IBP_OPERATION_NONE, &known);
    return follow_all(count, requests, before, ibp_openmpi_next.start(count, requests));
}

static __attribute__((noinline)) int start_in_parts(size_t count, void **requests)
{
    int result = 0;

    for (size_t done = 0; done < count && !result; done += AT_ONCE)
        result = ibp_openmpi_start_own(count - done < AT_ONCE ? count - done : AT_ONCE, requests + done);
    return result;
}

/* The fast path calls only Open MPI's start function, so that few registers must be saved. */
int ibp_openmpi_start_own(size_t count, void **requests)
{
    void *before[AT_ONCE];
    size_t i;
    int result;

    /* The fast path requires one thread at a time in MPI, no other call of this thread, and enabled counting. */
    if (IBP_UNLIKELY(!ibp_get_here()->is_outside) || IBP_UNLIKELY(ibp_periodic_in_messages))
        return start_each(count, requests, IBP_OPERATION_NONE);
    if (IBP_UNLIKELY(count > AT_ONCE)) return start_in_parts(count, requests);
    for (i = 0; i < count; i++)
        if (IBP_UNLIKELY(!count_known(before[i] = requests[i]))) return start_from(i, count, requests);
    result = ibp_openmpi_next.start(count, requests);
    while (i--)
        if (IBP_UNLIKELY(requests[i] != before[i])) return follow_all(count, requests, before, result);
    return result;
}

int ibp_openmpi_hook_start(size_t count, void **requests)
{
    /* The wrapper of MPI_Start has already counted these requests. */
    if (ibp_current_call.starts_request) return ibp_openmpi_next.start(count, requests);
    return start_each(count, requests, ibp_current_call.operation);
}

/* Return the number of requests before the first request without a hook; their hooked start functions count them. */
static size_t count_hooked(size_t count, void **requests)
{
    const struct ibp_request *request;
    size_t hooked = 0;

    ibp_lock();
    while (hooked < count && (request = ibp_request_find(requests[hooked])) && request->has_hook) hooked++;
    ibp_unlock();
    return hooked;
}

size_t ibp_openmpi_start(ibp_start_function *start, size_t count, void **requests, int *result)
{
    const struct ibp_current_call starting = {.kind = IBP_CALL_PERSISTENT, .starts_request = true};
    void *const before = requests[0];
    struct ibp_request known = {0};
    size_t hooked = count_hooked(count, requests);

    if (hooked) {
        ibp_enter(&ibp_calls[IBP_OPERATION_NONE], starting);
        *result = start((int)hooked, requests);
        ibp_leave();
        return hooked;
    }
    if (ibp_request_copy(before, &known) && known.role != IBP_REQUEST_SEND && known.role != IBP_REQUEST_RECEIVE)
        return 0;
    if (ibp_periodic_in_messages) ibp_periodic_check_now();
    count_any(before, IBP_OPERATION_NONE, &known);
    ibp_enter(&ibp_calls[IBP_OPERATION_NONE], starting);
    *result = start(1, requests);
    ibp_leave();
    if (requests[0] != before) follow(known, requests[0]);
    return 1;
}
