/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A peer is an endpoint, made from the address of the peer's worker. Both ends know the worker by its identifier.
 */
#include "platform/system.h"
#include "sources/mpich/ucx.h"
#include "counting/addresses.h"
#include "libmpi/got.h"
#include "libmpi/library.h"
#include "libmpi/lock.h"
#include "platform/text.h"
#include "sources/mpich/messages.h"
#include "sources/mpich/proof.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* -- the parts of UCX that are used; source: ucp.h of UCX 1.12 and later, whose binary interface is stable --------- */

#define OK 0
#define HAS_REMOTE_ADDRESS 1
#define HAS_DATATYPE (1 << 3)
#define HAS_UID 1

enum { DATATYPE_CLASS_MASK = 7, DATATYPE_SHIFT = 3, CONTIGUOUS = 0, IOV = 2, GENERIC = 7 };

struct endpoint_parameters {
    uint64_t fields;
    const void *address;
};

struct request_parameters {
    uint32_t fields, flags;
    void *request;
    void *callback;
    uint64_t datatype;
};

struct iov {
    void *buffer;
    size_t bytes;
};

struct address_attributes {
    uint64_t fields, uid;
};

struct generic_operations {
    void *(*start_pack)(void *, const void *, size_t);
    void *(*start_unpack)(void *, void *, size_t);
    size_t (*packed_size)(void *);
    size_t (*pack)(void *, size_t, void *, size_t);
    int (*unpack)(void *, size_t, const void *, size_t);
    void (*finish)(void *);
};

typedef int worker_create_function(void *, const void *, void **);
typedef int worker_get_address_function(void *, void **, size_t *);
typedef void worker_release_address_function(void *, void *);
typedef int address_query_function(const void *, struct address_attributes *);
typedef int ep_create_function(void *, const struct endpoint_parameters *, void **);
typedef void *tag_send_function(void *, const void *, size_t, uint64_t, const struct request_parameters *);
typedef void *am_send_nbx_function(void *, unsigned, const void *, size_t, const void *, size_t,
                                   const struct request_parameters *);
typedef void *am_send_nb_function(void *, uint16_t, const void *, size_t, uint64_t, void *, unsigned);
typedef int create_generic_function(const struct generic_operations *, void *, uint64_t *);

static struct {
    worker_create_function *worker_create;
    worker_get_address_function *worker_get_address;
    worker_release_address_function *worker_release_address;
    address_query_function *address_query;
    ep_create_function *ep_create;
    tag_send_function *tag_send, *tag_send_sync;
    am_send_nbx_function *am_send_nbx;
    am_send_nb_function *am_send_nb;
    create_generic_function *create_generic;
    size_t (*packed_size)(void *);
} original;

static struct ibp_peers endpoints; /* key: the endpoint; address: the worker's identifier */
static unsigned workers;
static const void *last_endpoint; /* with its peer's number: most messages go to the same peer as the one before */
static uint32_t last_number;
static bool sizes_missed; /* datatypes have other pack functions than MPI's usual ones */

/* Packed size of the datatype being sent; UCX asks for it within the call. */
static IBP_THREAD_LOCAL size_t packed_bytes;

/* -- whose endpoint ------------------------------------------------------------------------------------------------ */

static uint64_t uid_of(const void *address)
{
    struct address_attributes attributes = {.fields = HAS_UID};

    return address && !original.address_query(address, &attributes) ? attributes.uid : 0;
}

static int hook_worker_create(void *context, const void *parameters, void **worker)
{
    const int status = original.worker_create(context, parameters, worker);
    void *address = NULL;
    size_t bytes;
    uint64_t uid;

    if (status != OK || original.worker_get_address(*worker, &address, &bytes) != OK) return status;
    uid = uid_of(address);
    original.worker_release_address(*worker, address);
    if (!uid) return status;
    ibp_lock();
    ibp_address_of_own(&uid, sizeof uid);
    ibp_unlock();
    workers++;
    return status;
}

static int hook_ep_create(void *worker, const struct endpoint_parameters *parameters, void **endpoint)
{
    const int status = original.ep_create(worker, parameters, endpoint);
    struct ibp_peer *peer;

    if (status != OK) return status;
    ibp_lock();
    last_endpoint = NULL;
    peer = ibp_peer_enter(&endpoints, (uintptr_t)*endpoint);
    if (peer) {
        peer->address = parameters->fields & HAS_REMOTE_ADDRESS ? uid_of(parameters->address) : 0;
        peer->number = 0;
    }
    ibp_unlock();
    return status;
}

static uint32_t peer_of(void *endpoint)
{
    uint32_t number = IBP_PEER_UNKNOWN;
    struct ibp_peer *peer;

    if (!ibp_threads_multiple && endpoint == last_endpoint) return last_number;
    ibp_lock();
    peer = ibp_peer_find(&endpoints, (uintptr_t)endpoint);
    if (peer && !peer->number && peer->address) {
        number = ibp_address_of_peer(&peer->address, sizeof peer->address);
        if (number != IBP_PEER_UNKNOWN) peer->number = number;
    } else if (peer && peer->number) {
        number = peer->number;
    }
    ibp_unlock();
    if (!ibp_threads_multiple) {
        last_endpoint = number == IBP_PEER_UNKNOWN ? NULL : endpoint;
        last_number = number;
    }
    return number;
}

/* -- sends --------------------------------------------------------------------------------------------------------- */

static size_t hook_packed_size(void *state)
{
    packed_bytes = original.packed_size(state);
    return packed_bytes;
}

/* Hook the function that returns the packed size of derived datatypes, which MPI's functions pack. */
static int hook_create_generic(const struct generic_operations *operations, void *context, uint64_t *datatype)
{
    struct generic_operations ours = *operations;

    if (original.packed_size && original.packed_size != ours.packed_size) {
        sizes_missed = true;
    } else {
        original.packed_size = ours.packed_size;
        ours.packed_size = hook_packed_size;
    }
    return original.create_generic(&ours, context, datatype);
}

/* Return the bytes of a buffer; those of a generic datatype are known after the send. */
static uint64_t bytes_of(const void *buffer, size_t count, uint64_t datatype)
{
    const struct iov *parts = buffer;
    uint64_t bytes = 0;

    switch (datatype & DATATYPE_CLASS_MASK) {
    case CONTIGUOUS:
        return count * (datatype >> DATATYPE_SHIFT);
    case IOV:
        for (size_t i = 0; i < count; i++) bytes += parts[i].bytes;
        return bytes;
    default:
        return packed_bytes;
    }
}

static uint64_t datatype_of(const struct request_parameters *parameters)
{
    return parameters->fields & HAS_DATATYPE ? parameters->datatype : 1 << DATATYPE_SHIFT;
}

/* The tag holds 16 bits of context, 16 of the sender's rank, 32 of MPI's tag. */
static struct ibp_mpich_envelope envelope_of(uint64_t tag)
{
    return (struct ibp_mpich_envelope){.context = (uint32_t)(tag >> 48), .tag = (uint32_t)tag};
}

static void *hook_tag_send(void *endpoint, const void *buffer, size_t count, uint64_t tag,
                           const struct request_parameters *parameters)
{
    const uint64_t datatype = datatype_of(parameters);
    void *request = original.tag_send(endpoint, buffer, count, tag, parameters);

    ibp_mpich_count(envelope_of(tag), peer_of(endpoint), bytes_of(buffer, count, datatype));
    return request;
}

static void *hook_tag_send_sync(void *endpoint, const void *buffer, size_t count, uint64_t tag,
                                const struct request_parameters *parameters)
{
    const uint64_t datatype = datatype_of(parameters);
    void *request = original.tag_send_sync(endpoint, buffer, count, tag, parameters);

    ibp_mpich_count(envelope_of(tag), peer_of(endpoint), bytes_of(buffer, count, datatype));
    return request;
}

static void *hook_am_send_nbx(void *endpoint, unsigned id, const void *header, size_t header_bytes, const void *buffer,
                              size_t count, const struct request_parameters *parameters)
{
    const uint64_t datatype = datatype_of(parameters);
    void *request = original.am_send_nbx(endpoint, id, header, header_bytes, buffer, count, parameters);

    ibp_mpich_count_active_message(peer_of(endpoint), header_bytes + bytes_of(buffer, count, datatype));
    return request;
}

static void *hook_am_send_nb(void *endpoint, uint16_t id, const void *buffer, size_t count, uint64_t datatype,
                             void *callback, unsigned flags)
{
    void *request = original.am_send_nb(endpoint, id, buffer, count, datatype, callback, flags);

    ibp_mpich_count_active_message(peer_of(endpoint), bytes_of(buffer, count, datatype));
    return request;
}

/* -- hooking in ---------------------------------------------------------------------------------------------------- */

static void prepare(void)
{
    static const struct {
        const char *name;
        void *hook, *into;
    } hooks[] = {
        {"ucp_worker_create", (void *)hook_worker_create, &original.worker_create},
        {"ucp_ep_create", (void *)hook_ep_create, &original.ep_create},
        {"ucp_tag_send_nbx", (void *)hook_tag_send, &original.tag_send},
        {"ucp_tag_send_sync_nbx", (void *)hook_tag_send_sync, &original.tag_send_sync},
        {"ucp_am_send_nbx", (void *)hook_am_send_nbx, &original.am_send_nbx},
        {"ucp_am_send_nb", (void *)hook_am_send_nb, &original.am_send_nb},
        {"ucp_dt_create_generic", (void *)hook_create_generic, &original.create_generic},
    };
    const struct {
        const char *name;
        void *into;
    } needed[] = {
        {"ucp_worker_get_address", &original.worker_get_address},
        {"ucp_worker_release_address", &original.worker_release_address},
        {"ucp_worker_address_query", &original.address_query},
    };

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        void *function = ibp_mpi_dependency(needed[i].name);

        if (!function) return;
        memcpy(needed[i].into, &function, sizeof function);
    }
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        ibp_got_redirect(hooks[i].name, hooks[i].hook, hooks[i].into);
}

static int attach(char *why, size_t why_bytes)
{
    if (!workers || !original.tag_send) {
        snprintf(why, why_bytes, "this MPI (%s) does not send through a UCX of 1.12 or later", ibp_mpi.version);
        return -1;
    }
    return ibp_mpich_probe(why, why_bytes);
}

static void describe_gaps(char *notes, size_t bytes)
{
    ibp_mpich_describe_gaps(notes, bytes);
    if (sizes_missed) ibp_text_append(notes, bytes, "bytes of some derived datatypes cannot be seen\n");
}

const struct ibp_source_operations ibp_source_ucx = {
    .source = IBP_SOURCE_UCX,
    .name = "ucx",
    .prepare = prepare,
    .attach = attach,
    .describe_gaps = describe_gaps,
    IBP_MPICH_SOURCE,
};
