/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Communicators and windows: the world ranks of the members, and the calls that use internal tags of a communicator.
 */
#ifndef IBPROF_LIBMPI_COMMUNICATORS_H
#define IBPROF_LIBMPI_COMMUNICATORS_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of remembered internal tags of a communicator. New tags replace the oldest tags. */
#define IBP_TAGS_REMEMBERED 16384

struct ibp_tag_memory {
    struct {
        int tag;
        uint16_t call;
    } place[IBP_TAGS_REMEMBERED];
};

struct ibp_context; /* counting/context.h */

struct ibp_communicator {
    ibp_handle handle;
    /* Context of the communicator's messages (counting/communicator_contexts.h). NULL before the first message that is
     * known to be user data. */
    struct ibp_context *context;
    /* World rank of each rank; NULL if every rank equals its world rank. */
    uint32_t *world_rank;
    /* Number of ranks to which a member can send: in an intracommunicator the size of the group, in an
     * intercommunicator the size of the remote group. */
    int size;
    /* True if `world_rank` and `size` are known. */
    bool described;
    /* True if the communicator is an intercommunicator. Ranks in messages are then ranks in the remote group. */
    bool is_between;
    /* True if the communicator belongs to a window. The communicator's messages are then one-sided traffic. */
    bool carries_windows;
    /* True if Open MPI created the communicator for partitioned messages. */
    bool carries_partitions;
    /* True if `carries_partitions` is known. */
    bool is_examined;
    /* True after MPI_Comm_idup was called on the communicator. The messages of this call use tags that MPI chooses
     * after the call. */
    bool is_duplicated;
    /* Number of tags that nonblocking calls have used. If the MPI library does not show this number, ibprof counts the
     * calls. */
    uint32_t tags_taken;
    /* True if ibprof assumed, for at least one call, that the call used no tag. */
    bool has_spared_tags;
    /* Before the first nonblocking call on the communicator: IBP_OPERATION_NONE. If all nonblocking calls have the same
     * operation: this operation. Otherwise: IBP_OPERATION_UNATTRIBUTED. */
    uint16_t only_started;
    struct ibp_tag_memory *tags;
    /* The number of the communicator's group as a partner (counting/partners.h). Valid if `is_grouped`. */
    uint32_t group;
    bool is_grouped;
};

/* Return the entry of a communicator. At the first call for a communicator, fill the entry with the size and world
 * ranks that MPI reports. Return NULL if memory is exhausted. */
struct ibp_communicator *ibp_communicator_find(ibp_handle communicator);

/* Fill the entry of a new communicator. The lock of ibprof must be free, to avoid a deadlock: MPICH and Intel MPI take
 * a lock of MPI to report size and ranks. A sending thread may hold MPI's lock and wait for ibprof's lock. The caller
 * must be in an MPI call on the communicator, so that the communicator exists. */
void ibp_communicator_learn(ibp_handle communicator);

/* Return the entry of a communicator without calling MPI, for callers that only store data in the entry. */
struct ibp_communicator *ibp_communicator_enter(ibp_handle communicator);

/* Return the first used entry whose index is at least `*place`, and set `*place` to this index. Return NULL if no such
 * entry exists. */
const struct ibp_communicator *ibp_communicator_at(size_t *place);

/* Return the entry of a communicator; NULL if ibprof has not filled the entry, or if the communicator was freed. */
const struct ibp_communicator *ibp_communicator_known(ibp_handle communicator);

/* Return the entry of a window; NULL if memory is exhausted. At the first call for a window, fill the entry with size
 * and world ranks. The caller must hold ibprof's lock; the function releases the lock while it calls MPI. The caller
 * must be in an MPI call on the window. */
const struct ibp_communicator *ibp_window_find(ibp_handle window);

/* Forget a handle that is freed, because MPI may reuse the handle. */
void ibp_communicator_forget(ibp_handle handle);

/* Return the world rank of rank `rank` of the communicator; IBP_PEER_UNKNOWN if unknown. */
uint32_t ibp_communicator_peer(const struct ibp_communicator *communicator, int rank);

/* Remember that MPI creates a communicator for a window. This function may be called before the communicator is
 * complete. */
void ibp_communicator_note_carrier(ibp_handle communicator);

/* Return the number of the `ibp_call` (counting/calls.h) that uses an internal tag; IBP_OPERATION_NONE if unknown. */
unsigned ibp_tag_call(const struct ibp_communicator *communicator, int tag);
void ibp_tag_remember(struct ibp_communicator *communicator, int tag, unsigned call);

#endif
