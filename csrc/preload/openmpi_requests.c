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

static struct {
    int calls;
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

void ibp_openmpi_request_watch(void *request, uint64_t watch)
{
    void **callback = (void **)pointer_at(request, at.callback);

    if (is_complete(request)) {
        count_watched(status_of(request), watch);
        return;
    }
    if (*callback && *callback != (void *)ibp_openmpi_request_complete) return; /* its completion is somebody else's */
    callback[1] = (void *)(uintptr_t)watch;
    if (!ibp_threads_multiple) {
        callback[0] = (void *)ibp_openmpi_request_complete;
        return;
    }
    /* Another thread may complete it meanwhile. If it did before it could see the callback, nobody has called that. */
    __atomic_fetch_add(&watched, 1, __ATOMIC_RELAXED);
    __atomic_store_n(callback, (void *)ibp_openmpi_request_complete, __ATOMIC_SEQ_CST);
    if (is_complete(request) && __atomic_exchange_n(callback, NULL, __ATOMIC_SEQ_CST))
        ibp_openmpi_request_complete(request);
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
    if (!send_to_self(sent, byte)) return false;
    ibp_mpi.wait(&request, NULL);
    found = found && tried.calls == 1 && is_probe(&tried.status);
    ibp_log(2, "received bytes %s (status at %zu, callback at %zu of a request)",
            found ? "can be seen" : "cannot be seen", at.status, at.callback);
    return found;
}
