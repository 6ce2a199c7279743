/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "system.h"
#include "openmpi_requests.h"
#include "communicators.h"
#include "counters.h"
#include "current.h"
#include "lifecycle.h"
#include "text.h"

#include <string.h>

/* Open MPI's values of req_complete. */
#define REQUEST_PENDING ((void *)0)
#define REQUEST_COMPLETED ((void *)1)

/* The public part of a request is about 150 bytes long; more than this is not looked at. */
#define SEARCHED_BYTES 256

struct ibp_openmpi_request_layout ibp_openmpi_request;
#define at ibp_openmpi_request

/* Requests watched, and those of them whose end was seen, with several threads in MPI. */
static uint64_t watched, ended;

/* What a request calls to be freed. */
typedef int request_release(void **);

static struct {
    int calls, releases;
    struct ibp_openmpi_status status;
} tried;

static void *volatile *pointer_at(void *request, size_t offset)
{
    return (void *volatile *)((char *)request + offset);
}

static const struct ibp_openmpi_status *status_of(void *request)
{
    return (const struct ibp_openmpi_status *)((char *)request + at.status);
}

static __attribute__((noinline)) void count_other(ibp_handle handle, const struct ibp_openmpi_status *status,
                                                  unsigned operation)
{
    const struct ibp_communicator *communicator;
    enum ibp_kind kind = IBP_KIND_USER;
    uint32_t peer = (uint32_t)status->source;

    if (!ibp_is_active() || status->cancelled || status->source < 0) return;
    if (handle != ibp_mpi.world) {
        ibp_lock();
        communicator = ibp_communicator_known(handle);
        peer = ibp_communicator_peer(communicator, status->source);
        if (communicator && communicator->carries_windows) kind = IBP_KIND_CONTROL;
        ibp_unlock();
    }
    ibp_count(operation, kind, IBP_DIRECTION_RECEIVED, peer, status->bytes);
}

static ibp_handle watch_communicator(uint64_t watch)
{
    return (ibp_handle)(watch >> IBP_WATCH_KEY_BITS);
}

/* Counts what came on MPI_COMM_WORLD and has a counter already, as most does; false leaves all else to count_other. */
static inline bool count_plain(const struct ibp_openmpi_status *status, uint64_t watch)
{
    struct ibp_slot *slot;
    uint64_t key;

    if (IBP_UNLIKELY(watch_communicator(watch) != ibp_plain_world || status->cancelled)) return false;
    key = (watch & ((1 << IBP_WATCH_KEY_BITS) - 1)) | ibp_counters.region_key | IBP_KEY_PEER(status->source);
    slot = ibp_slot_of(key);
    if (IBP_UNLIKELY(slot->key != key)) return false;
    ibp_slot_add(slot, status->bytes);
    return true;
}

static void count_watched(const struct ibp_openmpi_status *status, uint64_t watch)
{
    if (!count_plain(status, watch))
        count_other(watch_communicator(watch), status, (unsigned)watch & IBP_KEY_OPERATION_MASK);
}

void ibp_openmpi_count_received(ibp_handle communicator, const struct ibp_openmpi_status *status, unsigned operation)
{
    count_watched(status, IBP_WATCH(communicator, operation));
}

static bool is_complete(void *request)
{
    return __atomic_load_n((void **)pointer_at(request, at.complete), __ATOMIC_ACQUIRE) == REQUEST_COMPLETED;
}

static bool is_watched(void *request)
{
    return *pointer_at(request, at.callback) == (void *)ibp_openmpi_request_complete;
}

int ibp_openmpi_request_complete(void *request)
{
    void *volatile *datum = pointer_at(request, at.callback + sizeof(void *));
    const uint64_t watch = (uint64_t)(uintptr_t)*datum;

    *datum = NULL; /* Open MPI's UCX component takes what it finds there in a request used again for its own */
    if (count_plain(status_of(request), watch)) return 0;
    if (ibp_threads_multiple) __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
    count_other(watch_communicator(watch), status_of(request), (unsigned)watch & IBP_KEY_OPERATION_MASK);
    return 0;
}

/* -- several threads in MPI ------------------------------------------------------------------------------------------- */

/* Open MPI reads the callback of a request and then, by and by, marks it as complete. A thread that sets the callback in
 * between is not called, and cannot tell: the request is pending before and after. But whoever waits for the request frees
 * it when it is complete, and that function of the request's is ours meanwhile. */
static request_release *release;

/* Counts a complete request, unless that was done. */
static void settle(void *request)
{
    if (is_complete(request) && is_watched(request) &&
        __atomic_exchange_n((void **)pointer_at(request, at.callback), NULL, __ATOMIC_SEQ_CST))
        ibp_openmpi_request_complete(request);
}

static int release_watched(void **request)
{
    *pointer_at(*request, at.release) = (void *)release;
    settle(*request);
    return release(request);
}

static void watch_among_threads(void *request)
{
    void **callback = (void **)pointer_at(request, at.callback);

    __atomic_fetch_add(&watched, 1, __ATOMIC_RELAXED);
    if (at.release && *pointer_at(request, at.release) == (void *)release)
        *pointer_at(request, at.release) = (void *)release_watched;
    __atomic_store_n(callback, (void *)ibp_openmpi_request_complete, __ATOMIC_SEQ_CST);
    settle(request);
}

/* -- watching --------------------------------------------------------------------------------------------------------- */

/* Leaves a request alone whose completion is somebody else's. */
static bool set_datum(void *request, uint64_t watch)
{
    if (*pointer_at(request, at.callback) && !is_watched(request)) return false;
    *pointer_at(request, at.callback + sizeof(void *)) = (void *)(uintptr_t)watch;
    return true;
}

void ibp_openmpi_request_watch(void *request, uint64_t watch)
{
    if (is_complete(request))
        count_watched(status_of(request), watch);
    else if (!set_datum(request, watch))
        return;
    else if (ibp_threads_multiple)
        watch_among_threads(request);
    else
        *pointer_at(request, at.callback) = (void *)ibp_openmpi_request_complete;
}

void ibp_openmpi_request_watch_next(void *request, uint64_t watch)
{
    if (!set_datum(request, watch)) return;
    if (ibp_threads_multiple) __atomic_fetch_add(&watched, 1, __ATOMIC_RELAXED);
    *pointer_at(request, at.callback) = (void *)ibp_openmpi_request_complete;
}

uint64_t ibp_openmpi_requests_missed(void)
{
    return watched - ended;
}

/* -- finding the layout ----------------------------------------------------------------------------------------------- */

static int on_trial(void *request)
{
    tried.calls++;
    tried.status = *status_of(request);
    return 0;
}

static int release_on_trial(void **request)
{
    *pointer_at(*request, at.release) = (void *)release;
    tried.releases += is_complete(*request);
    return release(request);
}

static bool is_probe(const struct ibp_openmpi_status *status)
{
    return status->source == 0 && status->tag == IBP_PROBE_TAG && status->error == 0 && status->cancelled == 0 &&
           status->bytes == IBP_PROBE_BYTES;
}

/* The communicator follows the callback and its datum. */
static bool find_layout(void *request)
{
    struct ibp_openmpi_status status;
    size_t communicator;

    for (at.status = 0;; at.status += sizeof(void *)) {
        if (at.status + sizeof status > SEARCHED_BYTES) return false;
        memcpy(&status, (char *)request + at.status, sizeof status);
        if (is_probe(&status)) break;
    }
    at.complete = at.status + sizeof status;
    if (*pointer_at(request, at.complete) != REQUEST_COMPLETED) return false;
    for (communicator = at.complete + 6 * sizeof(void *);; communicator += sizeof(void *)) {
        if (communicator + sizeof(void *) > SEARCHED_BYTES) return false;
        if (*pointer_at(request, communicator) == (void *)ibp_mpi.self) break;
    }
    at.callback = communicator - 2 * sizeof(void *);
    return !*pointer_at(request, at.callback) && !*pointer_at(request, at.callback + sizeof(void *));
}

/* Two pointers before the callback lies the function that frees a request: code of Open MPI's, if it is that. */
static void try_release(void *request)
{
    const size_t offset = at.callback - 2 * sizeof(void *);
    void *function = *pointer_at(request, offset);
    Dl_info module;

    if (!function || !dladdr(function, &module)) return;
    memcpy(&release, &function, sizeof release);
    at.release = offset;
    *pointer_at(request, offset) = (void *)release_on_trial;
}

static bool receive_from_self(void *buffer, ibp_handle byte, void **request)
{
    *request = NULL;
    return !ibp_mpi.irecv(buffer, IBP_PROBE_BYTES, byte, 0, IBP_PROBE_TAG, ibp_mpi.self, request) && *request;
}

static bool send_to_self(const void *buffer, ibp_handle byte)
{
    return !ibp_mpi.send(buffer, IBP_PROBE_BYTES, byte, 0, IBP_PROBE_TAG, ibp_mpi.self);
}

bool ibp_openmpi_requests_probe(void)
{
    const ibp_handle byte = (ibp_handle)ibp_mpi_symbol("ompi_mpi_byte");
    char sent[IBP_PROBE_BYTES] = "ibprof", received[IBP_PROBE_BYTES] = "";
    void *request;
    bool found;

    if (!byte || !receive_from_self(received, byte, &request)) return false;
    found = send_to_self(sent, byte) && find_layout(request);
    ibp_mpi.wait(&request, NULL);

    if (!receive_from_self(received, byte, &request)) return false;
    if (found && *pointer_at(request, at.complete) == REQUEST_PENDING && !*pointer_at(request, at.callback))
        *pointer_at(request, at.callback) = (void *)on_trial;
    if (found && ibp_threads_multiple) try_release(request);
    if (!send_to_self(sent, byte)) return false;
    ibp_mpi.wait(&request, NULL);
    found = found && tried.calls == 1 && is_probe(&tried.status);
    if (!found || tried.releases != 1) at.release = 0;
    ibp_log(2, "received bytes %s (status at %zu, callback at %zu of a request)",
            found ? "can be seen" : "cannot be seen", at.status, at.callback);
    return found;
}
