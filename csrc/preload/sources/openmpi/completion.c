/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/completion.h"
#include "counting/count.h"
#include "libmpi/communicators.h"
#include "libmpi/lock.h"
#include "recording/process_state.h"

size_t ibp_openmpi_request_offset;
ibp_openmpi_release_function *ibp_openmpi_release;

uint64_t ibp_openmpi_pending;

/* With several threads in MPI: `watched` counts the requests whose callback is count_complete, and `ended` counts the
 * calls of this callback. */
static uint64_t watched, ended;

/* With one thread in MPI: number of requests that the program freed before they completed. Open MPI does not call the
 * callbacks of these requests. */
static uint64_t freed;

/* -- counting ------------------------------------------------------------------------------------------------------ */

void ibp_openmpi_count_watched(const struct ibp_openmpi_status *status, uint64_t watch)
{
    const ibp_handle handle = (ibp_handle)(watch >> IBP_WATCH_KEY_BITS);
    const struct ibp_communicator *communicator;
    enum ibp_kind kind = ibp_key_kind(watch);
    uint32_t peer = (uint32_t)status->source;

    if (!ibp_is_active() || status->cancelled || status->source < 0) return;
    if (handle != ibp_mpi.world) {
        ibp_lock();
        communicator = ibp_communicator_known(handle);
        peer = ibp_communicator_peer(communicator, status->source);
        if (communicator && (communicator->carries_windows || communicator->carries_partitions))
            kind = IBP_KIND_CONTROL;
        ibp_unlock();
    }
    ibp_count((unsigned)watch & IBP_KEY_OPERATION_MASK, kind, IBP_DIRECTION_RECEIVED, peer, status->bytes);
}

static int count_complete(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);
    const uint64_t watch = part->datum;

    part->datum = 0; /* reset, because Open MPI's UCX component uses this field when it reuses the request */
    if (ibp_threads_multiple) __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
    ibp_openmpi_count_watched(&part->status, watch);
    return 0;
}

void ibp_openmpi_count_other(const struct ibp_openmpi_status *status, struct ibp_context *context)
{
    const unsigned operation = context->receive.operation;
    const struct ibp_slot *slot;
    uint32_t peer;

    if (!ibp_is_active() || status->cancelled || status->source < 0) return;
    peer = ibp_context_peer(context, status->source);
    slot = ibp_slot_known(ibp_origin_received(operation), IBP_KIND_USER, IBP_DIRECTION_RECEIVED, (int)peer);
    if (!slot) {
        ibp_count(operation, IBP_KIND_USER, IBP_DIRECTION_RECEIVED, peer, status->bytes);
        return;
    }
    ibp_add(slot->amount, status->bytes);
    ibp_recent_set(&context->receive, slot, status->source);
}

int ibp_openmpi_request_arrived(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);
    struct ibp_context *context = (struct ibp_context *)(uintptr_t)part->datum;

    part->datum = 0;
    context->pending--;
    ibp_openmpi_count_received(&part->status, context);
    return 0;
}

/* -- several threads in MPI ---------------------------------------------------------------------------------------- */

static bool is_complete(const struct ibp_openmpi_request *part)
{
    return __atomic_load_n(&part->complete, __ATOMIC_ACQUIRE) == IBP_OPENMPI_COMPLETED;
}

static inline void end_pending_locked(struct ibp_context *context)
{
    context->pending--;
    ibp_openmpi_pending--;
}

void ibp_openmpi_end_pending(struct ibp_context *context)
{
    ibp_lock_among_threads();
    end_pending_locked(context);
    ibp_unlock_among_threads();
}

/* Count a message whose sender differs from the sender of the previous message. Do not count a cancelled receive. */
static void count_other_among_threads(const struct ibp_openmpi_status *status, struct ibp_context *context)
{
    struct ibp_recent *recent = &context->receive;
    uint32_t peer;

    if (!ibp_is_active() || status->cancelled || status->source < 0) return;
    peer = ibp_context_peer(context, status->source);
    ibp_recent_set(recent, ibp_slot_made(ibp_key_here(recent->operation, IBP_KIND_USER, IBP_DIRECTION_RECEIVED, peer)),
                   status->source);
    ibp_add(recent->amount, status->bytes);
}

static __attribute__((noinline)) int count_arrived_slowly(const struct ibp_openmpi_status *status,
                                                          struct ibp_context *context)
{
    ibp_lock_among_threads();
    end_pending_locked(context);
    count_other_among_threads(status, context);
    ibp_unlock_among_threads();
    return 0;
}

static __attribute__((noinline)) int count_other_and_unlock(const struct ibp_openmpi_status *status,
                                                            struct ibp_context *context)
{
    count_other_among_threads(status, context);
    ibp_unlock_among_threads();
    return 0;
}

/* Count the message of a pending receive in the receive's context. Return 0, so that callers can make a tail call. */
static inline int count_arrived(const struct ibp_openmpi_status *status, struct ibp_context *context)
{
    if (!ibp_try_lock_among_threads()) return count_arrived_slowly(status, context);
    end_pending_locked(context);
    if (IBP_UNLIKELY(status->source != context->receive.peer) || IBP_UNLIKELY(status->cancelled))
        return count_other_and_unlock(status, context);
    ibp_add(context->receive.amount, status->bytes);
    ibp_unlock_among_threads();
    return 0;
}

void ibp_openmpi_count_among_threads(const struct ibp_openmpi_status *status, struct ibp_context *context)
{
    count_arrived(status, context);
}

int ibp_openmpi_request_arrived_among_threads(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);
    struct ibp_context *context = (struct ibp_context *)(uintptr_t)part->datum;

    part->datum = 0;
    return count_arrived(&part->status, context);
}

static bool is_watched(const struct ibp_openmpi_request *part)
{
    return part->callback == (void *)count_complete || part->callback == (void *)ibp_openmpi_request_arrived ||
           part->callback == (void *)ibp_openmpi_request_arrived_among_threads;
}

/* Count a completed request whose callback was not called. Open MPI first reads the callback of a request, then marks
 * the request as complete; Open MPI misses a callback that ibprof sets between these steps. Therefore ibprof also
 * replaces the function that frees the request, which Open MPI calls after completion. */
static __attribute__((noinline)) void settle(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);
    void *callback;

    if (!is_complete(part) || !is_watched(part)) return;
    callback = __atomic_exchange_n(&part->callback, NULL, __ATOMIC_SEQ_CST);
    if (callback == (void *)ibp_openmpi_request_arrived_among_threads)
        ibp_openmpi_request_arrived_among_threads(request);
    else if (callback)
        count_complete(request);
}

int ibp_openmpi_release_watched(void **request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(*request);

    part->release = (void *)ibp_openmpi_release;
    if (IBP_UNLIKELY(__atomic_load_n(&part->callback, __ATOMIC_ACQUIRE) != NULL)) settle(*request);
    return ibp_openmpi_release(request);
}

/* Replace the function that frees a request. Return false if the request has an unexpected function. */
static inline bool replace_release(struct ibp_openmpi_request *part)
{
    if (IBP_UNLIKELY(part->release != (void *)ibp_openmpi_release))
        return part->release == (void *)ibp_openmpi_release_watched;
    part->release = (void *)ibp_openmpi_release_watched;
    return true;
}

/* Set the callback of a request. If Open MPI does not call the callback, the function that frees the request counts the
 * request (see `settle`). If this function cannot be replaced, call `settle` here, after a memory fence. */
static inline void set_callback(void *request, ibp_openmpi_complete_function *callback)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (IBP_LIKELY(replace_release(part))) {
        __atomic_store_n(&part->callback, (void *)callback, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&part->callback, (void *)callback, __ATOMIC_SEQ_CST);
        settle(request);
    }
}

void ibp_openmpi_request_freed(void *request)
{
    const struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (!ibp_threads_multiple && is_watched(part) && !is_complete(part)) freed++;
}

uint64_t ibp_openmpi_requests_missed(void)
{
    return ibp_openmpi_pending + watched - ended + freed;
}

int ibp_openmpi_request_expect_among_threads_slowly(void *request, struct ibp_context *context)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (is_complete(part)) {
        count_arrived(&part->status, context);
    } else if (!part->callback || is_watched(part)) {
        part->datum = (uintptr_t)context;
        set_callback(request, ibp_openmpi_request_arrived_among_threads);
    } else { /* the request has a callback of another component, so ibprof cannot count it */
        ibp_openmpi_end_pending(context);
    }
    return 0;
}

/* -- watching ------------------------------------------------------------------------------------------------------ */

/* Set the datum of a request's callback. Return false if the request has a callback of another component. */
static bool set_datum(struct ibp_openmpi_request *part, uint64_t watch)
{
    if (part->callback && !is_watched(part)) return false;
    part->datum = watch;
    return true;
}

void ibp_openmpi_request_watch(void *request, uint64_t watch)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (is_complete(part)) {
        ibp_openmpi_count_watched(&part->status, watch);
    } else if (!set_datum(part, watch)) {
        return;
    } else if (ibp_threads_multiple) {
        __atomic_fetch_add(&watched, 1, __ATOMIC_RELAXED);
        set_callback(request, count_complete);
    } else {
        part->callback = (void *)count_complete;
    }
}

int ibp_openmpi_request_expect_slowly(struct ibp_openmpi_request *part, struct ibp_context *context)
{
    if (is_complete(part)) {
        ibp_openmpi_count_received(&part->status, context);
    } else if (set_datum(part, (uintptr_t)context)) {
        context->pending++;
        part->callback = (void *)ibp_openmpi_request_arrived;
    }
    return 0;
}

void ibp_openmpi_request_expect_next_among_threads(void *request, struct ibp_context *context)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (!set_datum(part, (uintptr_t)context)) return;
    context->pending++;
    ibp_openmpi_pending++;
    part->callback = (void *)ibp_openmpi_request_arrived_among_threads;
}

void ibp_openmpi_request_watch_next(void *request, uint64_t watch)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (!set_datum(part, watch)) return;
    if (ibp_threads_multiple) __atomic_fetch_add(&watched, 1, __ATOMIC_RELAXED);
    part->callback = (void *)count_complete;
}
