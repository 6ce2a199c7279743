/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/ucx.h"
#include "counting/times.h"
#include "libmpi/got.h"
#include "libmpi/library.h"
#include "platform/text.h"
#include "sources/mpich/messages.h"
#include "sources/mpich/proof.h"
#include "sources/mpich/ucx_abi.h"
#include "sources/mpich/ucx_peers.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef void *tag_send_function(void *, const void *, size_t, uint64_t, const struct ibp_ucx_request_parameters *);
typedef void *am_send_nbx_function(void *, unsigned, const void *, size_t, const void *, size_t,
                                   const struct ibp_ucx_request_parameters *);
typedef void *am_send_nb_function(void *, uint16_t, const void *, size_t, uint64_t, void *, unsigned);
typedef int create_generic_function(const struct ibp_ucx_generic_operations *, void *, uint64_t *);

static struct {
    tag_send_function *tag_send, *tag_send_sync;
    am_send_nbx_function *am_send_nbx;
    am_send_nb_function *am_send_nb;
    create_generic_function *create_generic;
    size_t (*packed_size)(void *);
    unsigned (*progress)(void *);
} original;

static bool sizes_missed; /* true if MPI uses more than one packed_size function */

/* Size in bytes of the packed data of the current send. UCX calls MPI's packed_size function inside the send. */
static IBP_THREAD_LOCAL size_t packed_bytes;

/* -- sends --------------------------------------------------------------------------------------------------------- */

static size_t hook_packed_size(void *state)
{
    packed_bytes = original.packed_size(state);
    return packed_bytes;
}

/* Hook the function of MPI that returns the packed size of derived datatypes. */
static int hook_create_generic(const struct ibp_ucx_generic_operations *operations, void *context, uint64_t *datatype)
{
    struct ibp_ucx_generic_operations hooked = *operations;

    if (original.packed_size && original.packed_size != hooked.packed_size) {
        sizes_missed = true;
    } else {
        original.packed_size = hooked.packed_size;
        hooked.packed_size = hook_packed_size;
    }
    return original.create_generic(&hooked, context, datatype);
}

/* Return the number of data bytes of a send. Call this after the send: before, the size of a generic datatype is
 * unknown. */
static uint64_t bytes_of(const void *buffer, size_t count, uint64_t datatype)
{
    const struct ibp_ucx_iov *parts = buffer;
    uint64_t bytes = 0;

    switch (datatype & IBP_UCX_DATATYPE_CLASS_MASK) {
    case IBP_UCX_CONTIGUOUS:
        return count * (datatype >> IBP_UCX_DATATYPE_SHIFT);
    case IBP_UCX_IOV:
        for (size_t i = 0; i < count; i++) bytes += parts[i].bytes;
        return bytes;
    default:
        return packed_bytes;
    }
}

static uint64_t datatype_of(const struct ibp_ucx_request_parameters *parameters)
{
    return parameters->fields & IBP_UCX_HAS_DATATYPE ? parameters->datatype : 1 << IBP_UCX_DATATYPE_SHIFT;
}

/* The tag of UCX contains, from the highest bit: 16 bits of context, 16 of the sender's rank, and 32 of MPI's tag. */
static struct ibp_mpich_envelope envelope_of(uint64_t tag)
{
    return (struct ibp_mpich_envelope){.context = (uint32_t)(tag >> 48), .tag = (uint32_t)tag};
}

static void *hook_tag_send(void *endpoint, const void *buffer, size_t count, uint64_t tag,
                           const struct ibp_ucx_request_parameters *parameters)
{
    const uint64_t datatype = datatype_of(parameters);
    void *request = original.tag_send(endpoint, buffer, count, tag, parameters);

    ibp_mpich_count(envelope_of(tag), ibp_ucx_peer_of(endpoint), bytes_of(buffer, count, datatype));
    return request;
}

static void *hook_tag_send_sync(void *endpoint, const void *buffer, size_t count, uint64_t tag,
                                const struct ibp_ucx_request_parameters *parameters)
{
    const uint64_t datatype = datatype_of(parameters);
    void *request = original.tag_send_sync(endpoint, buffer, count, tag, parameters);

    ibp_mpich_count(envelope_of(tag), ibp_ucx_peer_of(endpoint), bytes_of(buffer, count, datatype));
    return request;
}

static void *hook_am_send_nbx(void *endpoint, unsigned id, const void *header, size_t header_bytes, const void *buffer,
                              size_t count, const struct ibp_ucx_request_parameters *parameters)
{
    const uint64_t datatype = datatype_of(parameters);
    void *request = original.am_send_nbx(endpoint, id, header, header_bytes, buffer, count, parameters);

    ibp_mpich_count_active_message(ibp_ucx_peer_of(endpoint), header_bytes + bytes_of(buffer, count, datatype));
    return request;
}

static void *hook_am_send_nb(void *endpoint, uint16_t id, const void *buffer, size_t count, uint64_t datatype,
                             void *callback, unsigned flags)
{
    void *request = original.am_send_nb(endpoint, id, buffer, count, datatype, callback, flags);

    ibp_mpich_count_active_message(ibp_ucx_peer_of(endpoint), bytes_of(buffer, count, datatype));
    return request;
}

/* -- waits --------------------------------------------------------------------------------------------------------- */

static unsigned hook_progress(void *worker)
{
    const uint64_t begin = ibp_times_progress_begin();
    unsigned events;

    ibp_mpich_passes++;
    if (!begin) return original.progress(worker);
    events = original.progress(worker);
    ibp_times_progress_end(begin);
    return events;
}

/* -- hooking in ---------------------------------------------------------------------------------------------------- */

static void prepare(void)
{
    static const struct {
        const char *name;
        void *hook, *into;
    } hooks[] = {
        {"ucp_tag_send_nbx", (void *)hook_tag_send, &original.tag_send},
        {"ucp_tag_send_sync_nbx", (void *)hook_tag_send_sync, &original.tag_send_sync},
        {"ucp_am_send_nbx", (void *)hook_am_send_nbx, &original.am_send_nbx},
        {"ucp_am_send_nb", (void *)hook_am_send_nb, &original.am_send_nb},
        {"ucp_dt_create_generic", (void *)hook_create_generic, &original.create_generic},
        {"ucp_worker_progress", (void *)hook_progress, &original.progress},
    };

    if (ibp_ucx_hook_peers()) return;
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        ibp_got_redirect(hooks[i].name, hooks[i].hook, hooks[i].into);
}

static int attach(char *why, size_t why_bytes)
{
    if (!ibp_ucx_workers() || !original.tag_send) {
        snprintf(why, why_bytes, "this MPI (%s) does not send through a UCX of 1.12 or later", ibp_mpi.version);
        return -1;
    }
    return ibp_mpich_probe(why, why_bytes);
}

static void describe_gaps(char *notes, size_t bytes)
{
    ibp_mpich_describe_gaps(notes, bytes);
    if (sizes_missed) ibp_text_append(notes, bytes, "ibprof does not see the bytes of some derived datatypes\n");
}

const struct ibp_source_operations ibp_source_ucx = {
    .source = IBP_SOURCE_UCX,
    .name = "ucx",
    .prepare = prepare,
    .attach = attach,
    .describe_gaps = describe_gaps,
    IBP_MPICH_SOURCE,
};
