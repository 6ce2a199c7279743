/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks for sends. The fast path counts a message to the same peer as the last message. The second path counts a
 * message whose counter exists already. The slow path classifies all other messages.
 */
#include "platform/system.h"
#include "sources/openmpi/sends.h"
#include "counting/communicator_contexts.h"
#include "counting/context.h"
#include "counting/count.h"
#include "counting/periodic.h"
#include "libmpi/datatypes.h"
#include "recording/process_state.h"
#include "sources/openmpi/classify.h"
#include "sources/openmpi/completion_probe.h"

int ibp_openmpi_probes_seen;

/* -- messages of ibp_here ------------------------------------------------------------------------------------------ */

/* Return whether a message belongs to the call of the current context: it has the standard mode, and is no message of a
 * nonblocking collective. Outside of wrapped calls, only MPI_Send and MPI_Isend have the standard mode. */
static inline bool is_of_call(const struct ibp_context *here, int tag, int mode)
{
    return IBP_LIKELY(tag >= here->lowest_tag) && IBP_LIKELY(mode == IBP_OPENMPI_STANDARD_MODE);
}

/* Return `send` or `isend` of a context. `member`: the offset of the member. */
static inline struct ibp_recent *recent_of(const struct ibp_context *context, size_t member)
{
    return (struct ibp_recent *)((char *)context + member);
}

/* Count a message of the current call if its peer is the peer of the last message; otherwise return false. */
static inline bool see_recent(const struct ibp_context *here, const struct ibp_recent *recent, size_t count,
                              ibp_handle datatype, int peer, int tag, int mode)
{
    if (!is_of_call(here, tag, mode) || IBP_UNLIKELY(peer != recent->peer)) return false;
    ibp_openmpi_add_sent(recent->amount, recent->bins, count, datatype);
    return true;
}

/* Return `send` or `isend`, the last message's counter, of the communicator's context. `member`: offset of `send` or
 * `isend`. `here`: the context of the current call. Return NULL if the communicator's context is not cached, or if the
 * origin of the counter differs from the origin of the current call. */
static inline const struct ibp_recent *recent_elsewhere(const struct ibp_context *here, size_t member,
                                                        ibp_handle communicator)
{
    const struct ibp_context *context = ibp_context_cached(communicator);

    if (IBP_UNLIKELY(!context)) return NULL;
    return IBP_LIKELY(recent_of(context, member)->origin == recent_of(here, member)->origin)
               ? recent_of(context, member)
               : NULL;
}

/* Count a message whose counter exists already, and store the counter as the counter of the last message. Return false
 * if the counter does not exist. Inside a call, messages may have any send mode. */
static inline bool see_known(struct ibp_context *here, size_t member, size_t count, ibp_handle datatype, int peer,
                             int tag, int mode, ibp_handle communicator)
{
    struct ibp_context *context = here;
    const struct ibp_slot *slot;

    if (!here->sent_on || !is_of_call(here, tag, here->is_of_standard_mode ? mode : IBP_OPENMPI_STANDARD_MODE))
        return false;
    if (communicator != ibp_contexts_world && !(context = ibp_context_find(communicator))) return false;
    slot = ibp_slot_known(ibp_context_origin(here, recent_of(here, member)), IBP_KIND_USER, IBP_DIRECTION_SENT,
                          (int)ibp_context_peer(context, peer));
    if (!slot) return false;
    ibp_openmpi_add_sent(slot->amount, slot->bins, count, datatype);
    if (context != here) ibp_recent_set(recent_of(context, member), slot, peer);
    if (here->site != IBP_SITE_UNKNOWN) ibp_context_move(here, communicator);
    if (communicator == here->sent_on) ibp_recent_set(recent_of(here, member), slot, peer);
    return true;
}

/* -- messages that must be classified ------------------------------------------------------------------------------ */

void ibp_openmpi_see_any(size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator,
                         unsigned otherwise)
{
    struct ibp_openmpi_message message;

    if (!ibp_is_active()) {
        ibp_openmpi_probes_seen += communicator == ibp_mpi.self && tag == IBP_PROBE_TAG && count == IBP_PROBE_BYTES;
        return;
    }
    message = ibp_openmpi_classify(communicator, peer, tag, otherwise);
    if (!ibp_operation_wanted[message.operation]) return;
    if (message.call)
        ibp_count_of(message.call, message.kind, IBP_DIRECTION_SENT, message.peer, ibp_mpi_bytes(count, datatype));
    else
        ibp_count(message.operation, message.kind, IBP_DIRECTION_SENT, message.peer, ibp_mpi_bytes(count, datatype));
}

/* -- hooks --------------------------------------------------------------------------------------------------------- */

/* The hooks are split so that for most messages, a hook needs no stack frame and moves no arguments. */

static __attribute__((noinline)) int send_other(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                int tag, int mode, ibp_handle communicator)
{
    struct ibp_context *here = ibp_get_here();

    if (!see_known(here, offsetof(struct ibp_context, send), count, datatype, peer, tag, mode, communicator))
        ibp_openmpi_see_any(count, datatype, peer, tag, communicator, ibp_openmpi_blocking_operation(mode));
    return ibp_openmpi_next.send(buffer, count, datatype, peer, tag, mode, communicator);
}

static __attribute__((noinline)) int send_elsewhere(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                    int tag, int mode, ibp_handle communicator)
{
    const struct ibp_context *here = ibp_get_here();
    const struct ibp_recent *recent = recent_elsewhere(here, offsetof(struct ibp_context, send), communicator);

    if (IBP_LIKELY(recent != NULL) && see_recent(here, recent, count, datatype, peer, tag, mode))
        return ibp_openmpi_next.send(buffer, count, datatype, peer, tag, mode, communicator);
    return send_other(buffer, count, datatype, peer, tag, mode, communicator);
}

int ibp_openmpi_hook_send(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                          ibp_handle communicator)
{
    const struct ibp_context *here = ibp_get_here();

    if (IBP_LIKELY(communicator == here->sent_on) && see_recent(here, &here->send, count, datatype, peer, tag, mode))
        return ibp_openmpi_next.send(buffer, count, datatype, peer, tag, mode, communicator);
    return send_elsewhere(buffer, count, datatype, peer, tag, mode, communicator);
}

static __attribute__((noinline)) int isend_other(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                 int tag, int mode, ibp_handle communicator, void **request)
{
    struct ibp_context *here = ibp_get_here();

    if (!see_known(here, offsetof(struct ibp_context, isend), count, datatype, peer, tag, mode, communicator))
        ibp_openmpi_see_any(count, datatype, peer, tag, communicator, ibp_openmpi_nonblocking_operation(mode));
    return ibp_openmpi_next.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
}

static __attribute__((noinline)) int isend_elsewhere(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                     int tag, int mode, ibp_handle communicator, void **request)
{
    const struct ibp_context *here = ibp_get_here();
    const struct ibp_recent *recent = recent_elsewhere(here, offsetof(struct ibp_context, isend), communicator);

    if (IBP_LIKELY(recent != NULL) && see_recent(here, recent, count, datatype, peer, tag, mode))
        return ibp_openmpi_next.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
    return isend_other(buffer, count, datatype, peer, tag, mode, communicator, request);
}

int ibp_openmpi_hook_isend(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                           ibp_handle communicator, void **request)
{
    const struct ibp_context *here = ibp_get_here();

    if (IBP_LIKELY(communicator == here->sent_on) && see_recent(here, &here->isend, count, datatype, peer, tag, mode))
        return ibp_openmpi_next.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
    return isend_elsewhere(buffer, count, datatype, peer, tag, mode, communicator, request);
}

int ibp_openmpi_hook_send_periodic(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                                   ibp_handle communicator)
{
    ibp_periodic_check_now();
    return ibp_openmpi_hook_send(buffer, count, datatype, peer, tag, mode, communicator);
}

int ibp_openmpi_hook_isend_periodic(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                                    ibp_handle communicator, void **request)
{
    ibp_periodic_check_now();
    return ibp_openmpi_hook_isend(buffer, count, datatype, peer, tag, mode, communicator, request);
}
