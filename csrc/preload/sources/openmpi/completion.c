/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/completion.h"
#include "libmpi/communicators.h"
#include "libmpi/lock.h"
#include "recording/process_state.h"

size_t ibp_openmpi_request_offset;
ibp_openmpi_release_function *ibp_openmpi_release;

/* Numbers of watched requests, and of those whose completion was seen, with several threads in MPI. */
static uint64_t watched, ended;

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

    part->datum = 0; /* Open MPI's UCX component uses the field in a request that is used again */
    if (ibp_threads_multiple) __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
    ibp_openmpi_count_watched(&part->status, watch);
    return 0;
}

void ibp_openmpi_count_other(const struct ibp_openmpi_status *status, struct ibp_recent *recent)
{
    const struct ibp_slot *slot =
        status->cancelled
            ? NULL
            : ibp_slot_known(IBP_KEY_OF(recent->operation, IBP_KIND_USER, IBP_DIRECTION_RECEIVED), status->source);

    if (!slot || !ibp_is_active()) {
        ibp_openmpi_count_watched(status, IBP_WATCH(ibp_mpi.world, recent->operation));
        return;
    }
    ibp_add(slot->amount, status->bytes);
    ibp_recent_set(recent, slot, status->source);
}

int ibp_openmpi_request_arrived(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);
    struct ibp_context *context = (struct ibp_context *)(uintptr_t)part->datum;

    part->datum = 0;
    ibp_openmpi_count_received(&part->status, context);
    return 0;
}

/* -- several threads in MPI ---------------------------------------------------------------------------------------- */

static bool is_complete(const struct ibp_openmpi_request *part)
{
    return __atomic_load_n(&part->complete, __ATOMIC_ACQUIRE) == IBP_OPENMPI_COMPLETED;
}

static bool is_watched(const struct ibp_openmpi_request *part)
{
    return part->callback == (void *)count_complete || part->callback == (void *)ibp_openmpi_request_arrived;
}

/* Count a completed request, unless that was done. Open MPI reads a request's callback and marks the request as
 * complete some time later. A callback that a thread sets in between is not called, and the thread cannot see that:
 * the request is pending before and after. But whoever waits for the request frees it when it is complete, by a
 * function that is replaced meanwhile. */
static void settle(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (is_complete(part) && is_watched(part) && __atomic_exchange_n(&part->callback, NULL, __ATOMIC_SEQ_CST))
        count_complete(request);
}

static int release_watched(void **request)
{
    ibp_openmpi_request_of(*request)->release = (void *)ibp_openmpi_release;
    settle(*request);
    return ibp_openmpi_release(request);
}

static void watch_among_threads(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    __atomic_fetch_add(&watched, 1, __ATOMIC_RELAXED);
    if (ibp_openmpi_release && part->release == (void *)ibp_openmpi_release) part->release = (void *)release_watched;
    __atomic_store_n(&part->callback, (void *)count_complete, __ATOMIC_SEQ_CST);
    settle(request);
}

uint64_t ibp_openmpi_requests_missed(void)
{
    return watched - ended;
}

/* -- watching ------------------------------------------------------------------------------------------------------ */

/* Set the datum, unless the request has another callback. Return whether it was set. */
static bool set_datum(struct ibp_openmpi_request *part, uint64_t watch)
{
    if (part->callback && !is_watched(part)) return false;
    part->datum = watch;
    return true;
}

void ibp_openmpi_request_watch(void *request, uint64_t watch)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (is_complete(part))
        ibp_openmpi_count_watched(&part->status, watch);
    else if (!set_datum(part, watch))
        return;
    else if (ibp_threads_multiple)
        watch_among_threads(request);
    else
        part->callback = (void *)count_complete;
}

int ibp_openmpi_request_expect_slowly(struct ibp_openmpi_request *part, struct ibp_context *context)
{
    if (is_complete(part))
        ibp_openmpi_count_received(&part->status, context);
    else if (set_datum(part, (uintptr_t)context))
        part->callback = (void *)ibp_openmpi_request_arrived;
    return 0;
}

void ibp_openmpi_request_watch_next(void *request, uint64_t watch)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (!set_datum(part, watch)) return;
    if (ibp_threads_multiple) __atomic_fetch_add(&watched, 1, __ATOMIC_RELAXED);
    part->callback = (void *)count_complete;
}
