/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks of the calls that send, and what their messages are.
 */
#include "system.h"
#include "communicators.h"
#include "counters.h"
#include "lifecycle.h"
#include "openmpi_hooks.h"
#include "openmpi_requests.h"

static const uint16_t blocking_operation[IBP_OPENMPI_MODES] =
    IBP_OPENMPI_BY_MODE(IBP_OPERATION_Send, IBP_OPERATION_Ssend, IBP_OPERATION_Bsend, IBP_OPERATION_Rsend);
static const uint16_t nonblocking_operation[IBP_OPENMPI_MODES] =
    IBP_OPENMPI_BY_MODE(IBP_OPERATION_Isend, IBP_OPERATION_Issend, IBP_OPERATION_Ibsend, IBP_OPERATION_Irsend);

int ibp_openmpi_probes_seen;

/* The operation of a message that has no tag of its own; `otherwise` outside of any wrapped call. */
static unsigned untagged_operation(int tag, unsigned otherwise)
{
    const bool by_user = tag >= -1; /* MPI_ANY_TAG is -1 */

    return ibp_openmpi_starting_operation(ibp_current.operation ? ibp_current.operation
                                          : by_user             ? otherwise
                                                                : IBP_OPERATION_UNATTRIBUTED);
}

struct ibp_openmpi_message ibp_openmpi_classify(ibp_handle handle, int rank, int tag, unsigned otherwise)
{
    const bool counted = ibp_openmpi_tag_is_counted(tag);
    struct ibp_openmpi_message message = {.kind = IBP_KIND_USER, .peer = (uint32_t)rank};
    struct ibp_communicator *communicator;

    if (handle == ibp_mpi.world && !counted) {
        message.operation = untagged_operation(tag, otherwise);
        return message;
    }
    ibp_lock();
    communicator = ibp_communicator_find(handle);
    message.peer = ibp_communicator_peer(communicator, rank);
    if (communicator && communicator->carries_windows) {
        message.kind = IBP_KIND_CONTROL;
        otherwise = IBP_OPERATION_UNATTRIBUTED;
    }
    message.operation =
        communicator && counted ? ibp_openmpi_tagged_operation(communicator, tag) : untagged_operation(tag, otherwise);
    ibp_unlock();
    return message;
}

/* Standard mode, a datatype whose size is at hand: what most sends of an application's are. */
static inline bool is_plain(ibp_handle datatype, int tag, int mode, ibp_handle communicator)
{
    return IBP_LIKELY(mode == IBP_OPENMPI_STANDARD_MODE) && IBP_LIKELY(datatype == ibp_known_type.datatype) &&
           ibp_openmpi_is_plain(communicator, tag);
}

/* Counts a plain message to the peer that the last one went to; false leaves all others to see_any. */
static inline bool see_recent(enum ibp_recent_purpose call, size_t count, ibp_handle datatype, int peer, int tag,
                              int mode, ibp_handle communicator)
{
    const struct ibp_recent *recent = &ibp_recent[call];
    uint64_t bytes;

    if (!is_plain(datatype, tag, mode, communicator) || IBP_UNLIKELY(peer != recent->peer)) return false;
    bytes = count * ibp_known_type.size;
    ibp_add(recent->amount, bytes);
    ibp_add_size(recent->bins, bytes);
    return true;
}

/* Counts a message of a known datatype on MPI_COMM_WORLD if it has a counter already. */
static inline struct ibp_slot *see_known(size_t count, int peer, unsigned operation)
{
    const uint64_t bytes = count * ibp_known_type.size;
    struct ibp_slot *slot = ibp_count_known(
        IBP_KEY_OF(operation, IBP_KIND_USER, IBP_DIRECTION_SENT) | ibp_counters.region_key | IBP_KEY_PEER(peer), bytes);

    if (IBP_LIKELY(slot != NULL)) ibp_add_size(slot->bins, bytes);
    return slot;
}

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

/* Counts a plain message that see_recent did not, and remembers its peer. */
static inline bool see_plain(enum ibp_recent_purpose call, size_t count, ibp_handle datatype, int peer, int tag,
                             int mode, ibp_handle communicator, unsigned operation)
{
    const struct ibp_slot *slot =
        is_plain(datatype, tag, mode, communicator) ? see_known(count, peer, operation) : NULL;

    if (slot) ibp_recent_set(call, slot, operation, peer);
    return slot != NULL;
}

/* Counts a message of a blocking collective, or of another call that this thread is in. */
static inline bool see_inside(size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator)
{
    return ibp_openmpi_is_inside(communicator, tag) && IBP_LIKELY(datatype == ibp_known_type.datatype || !count) &&
           see_known(count, peer, ibp_current.operation);
}

/* -- hooks ------------------------------------------------------------------------------------------------------------ */

/* From the commonest messages to the rarest. Each passes all others on without a frame of its own, arguments where they are. */

static __attribute__((noinline)) int send_any(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                              int mode, ibp_handle communicator)
{
    if (!see_plain(IBP_RECENT_SEND, count, datatype, peer, tag, mode, communicator, IBP_OPERATION_Send))
        see_any(count, datatype, peer, tag, communicator, ibp_openmpi_mode_operation(blocking_operation, mode));
    return ibp_openmpi_next.send(buffer, count, datatype, peer, tag, mode, communicator);
}

static __attribute__((noinline)) int send_inside(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                 int tag, int mode, ibp_handle communicator)
{
    if (see_inside(count, datatype, peer, tag, communicator))
        return ibp_openmpi_next.send(buffer, count, datatype, peer, tag, mode, communicator);
    return send_any(buffer, count, datatype, peer, tag, mode, communicator);
}

int ibp_openmpi_hook_send(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                          ibp_handle communicator)
{
    if (see_recent(IBP_RECENT_SEND, count, datatype, peer, tag, mode, communicator))
        return ibp_openmpi_next.send(buffer, count, datatype, peer, tag, mode, communicator);
    return send_inside(buffer, count, datatype, peer, tag, mode, communicator);
}

static __attribute__((noinline)) int isend_any(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                               int mode, ibp_handle communicator, void **request)
{
    if (!see_plain(IBP_RECENT_ISEND, count, datatype, peer, tag, mode, communicator, IBP_OPERATION_Isend))
        see_any(count, datatype, peer, tag, communicator, ibp_openmpi_mode_operation(nonblocking_operation, mode));
    return ibp_openmpi_next.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
}

static __attribute__((noinline)) int isend_inside(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                  int tag, int mode, ibp_handle communicator, void **request)
{
    if (see_inside(count, datatype, peer, tag, communicator))
        return ibp_openmpi_next.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
    return isend_any(buffer, count, datatype, peer, tag, mode, communicator, request);
}

int ibp_openmpi_hook_isend(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                           ibp_handle communicator, void **request)
{
    if (see_recent(IBP_RECENT_ISEND, count, datatype, peer, tag, mode, communicator))
        return ibp_openmpi_next.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
    return isend_inside(buffer, count, datatype, peer, tag, mode, communicator, request);
}
