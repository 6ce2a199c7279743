/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A message takes the shortest path that applies: the peer of the last message, another known peer, classification.
 */
#include "platform/system.h"
#include "sources/openmpi/sends.h"
#include "counting/context.h"
#include "counting/counters.h"
#include "counting/periodic.h"
#include "libmpi/handles.h"
#include "recording/process_state.h"
#include "sources/openmpi/classify.h"
#include "sources/openmpi/completion_probe.h"

static const uint16_t blocking_operation[IBP_OPENMPI_MODES] =
    IBP_OPENMPI_BY_MODE(IBP_OPERATION_Send, IBP_OPERATION_Ssend, IBP_OPERATION_Bsend, IBP_OPERATION_Rsend);
static const uint16_t nonblocking_operation[IBP_OPENMPI_MODES] =
    IBP_OPENMPI_BY_MODE(IBP_OPERATION_Isend, IBP_OPERATION_Issend, IBP_OPERATION_Ibsend, IBP_OPERATION_Irsend);

int ibp_openmpi_probes_seen;

/* -- messages of ibp_here ------------------------------------------------------------------------------------------ */

/* Return whether ibp_here applies to a message: it is on MPI_COMM_WORLD, its datatype's size is known, and it is in
 * standard mode, which outside of wrapped calls means MPI_Send or MPI_Isend. */
static inline bool is_here(const struct ibp_context *here, size_t count, ibp_handle datatype, int tag, int mode,
                           ibp_handle communicator)
{
    return IBP_LIKELY(communicator == here->sent_on) && IBP_LIKELY(tag >= here->lowest_tag) &&
           IBP_LIKELY(mode == IBP_OPENMPI_STANDARD_MODE) &&
           (IBP_LIKELY(datatype == ibp_known_type.datatype) || IBP_LIKELY(!count));
}

/* The same for a message to another peer than the last one's: inside a call its mode does not matter. */
static inline bool is_another_here(const struct ibp_context *here, size_t count, ibp_handle datatype, int tag, int mode,
                                   ibp_handle communicator)
{
    return is_here(here, count, datatype, tag, here == &ibp_outside ? mode : IBP_OPENMPI_STANDARD_MODE, communicator);
}

static inline void add_sent(uint64_t *amount, uint64_t *bins, size_t count)
{
    const uint64_t bytes = count * ibp_known_type.size;

    ibp_add(amount, bytes);
    ibp_add_size(bins, bytes);
}

/* Count a message to the peer of the last message; return false for all others. */
static inline bool see_recent(const struct ibp_context *here, const struct ibp_recent *recent, size_t count,
                              ibp_handle datatype, int peer, int tag, int mode, ibp_handle communicator)
{
    if (!is_here(here, count, datatype, tag, mode, communicator) || IBP_UNLIKELY(peer != recent->peer)) return false;
    add_sent(recent->amount, recent->bins, count);
    return true;
}

/* Count a message to another peer, if it has a counter already, and remember that; return false otherwise. */
static inline bool see_known(struct ibp_recent *recent, size_t count, int peer)
{
    const struct ibp_slot *slot =
        ibp_slot_known(IBP_KEY_OF(recent->operation, IBP_KIND_USER, IBP_DIRECTION_SENT), peer);

    if (!slot) return false;
    add_sent(slot->amount, slot->bins, count);
    ibp_recent_set(recent, slot, peer);
    return true;
}

/* -- all others ---------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void see_any(size_t count, ibp_handle datatype, int peer, int tag,
                                              ibp_handle communicator, unsigned otherwise)
{
    struct ibp_openmpi_message message;

    if (!ibp_is_active()) {
        ibp_openmpi_probes_seen += communicator == ibp_mpi.self && tag == IBP_PROBE_TAG && count == IBP_PROBE_BYTES;
        return;
    }
    message = ibp_openmpi_classify(communicator, peer, tag, otherwise);
    if (!ibp_operation_wanted[message.operation]) return;
    ibp_count(message.operation, message.kind, IBP_DIRECTION_SENT, message.peer, ibp_mpi_bytes(count, datatype));
}

/* -- hooks --------------------------------------------------------------------------------------------------------- */

/* The hooks pass most messages on without a stack frame, arguments in place. */

static __attribute__((noinline)) int send_other(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                int tag, int mode, ibp_handle communicator)
{
    struct ibp_context *here = ibp_get_here();

    if (!is_another_here(here, count, datatype, tag, mode, communicator) || !see_known(&here->send, count, peer))
        see_any(count, datatype, peer, tag, communicator, ibp_openmpi_mode_operation(blocking_operation, mode));
    return ibp_openmpi_next.send(buffer, count, datatype, peer, tag, mode, communicator);
}

int ibp_openmpi_hook_send(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                          ibp_handle communicator)
{
    const struct ibp_context *here = ibp_get_here();

    if (see_recent(here, &here->send, count, datatype, peer, tag, mode, communicator))
        return ibp_openmpi_next.send(buffer, count, datatype, peer, tag, mode, communicator);
    return send_other(buffer, count, datatype, peer, tag, mode, communicator);
}

static __attribute__((noinline)) int isend_other(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                 int tag, int mode, ibp_handle communicator, void **request)
{
    struct ibp_context *here = ibp_get_here();

    if (!is_another_here(here, count, datatype, tag, mode, communicator) || !see_known(&here->isend, count, peer))
        see_any(count, datatype, peer, tag, communicator, ibp_openmpi_mode_operation(nonblocking_operation, mode));
    return ibp_openmpi_next.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
}

int ibp_openmpi_hook_isend(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                           ibp_handle communicator, void **request)
{
    const struct ibp_context *here = ibp_get_here();

    if (see_recent(here, &here->isend, count, datatype, peer, tag, mode, communicator))
        return ibp_openmpi_next.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
    return isend_other(buffer, count, datatype, peer, tag, mode, communicator, request);
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
