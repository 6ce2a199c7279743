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
    /* Context of the communicator's messages (counting/communicator_contexts.h). NULL until a message is known to be
     * user data. */
    struct ibp_context *context;
    /* World ranks by rank; NULL if ranks are world ranks. */
    uint32_t *world_rank;
    /* Size of the group to which messages are sent: in an intercommunicator, the remote group. */
    int size;
    /* `world_rank` and `size` are known. */
    bool described;
    /* An intercommunicator: ranks are ranks of the remote group. */
    bool is_between;
    /* The communicator belongs to a window: its messages are one-sided traffic. */
    bool carries_windows;
    /* Open MPI created it for partitioned messages. */
    bool carries_partitions;
    /* `carries_partitions` is known. */
    bool is_examined;
    /* MPI_Comm_idup was called on the communicator. Its messages use further tags, which MPI chooses after the call. */
    bool is_duplicated;
    /* Number of tags that nonblocking calls used. Counted by ibprof if the MPI library does not show this number. */
    uint32_t tags_taken;
    /* ibprof assumed for some calls that MPI used no tag. */
    bool has_spared_tags;
    /* The operation of all nonblocking calls on the communicator; IBP_OPERATION_UNATTRIBUTED for several operations,
     * IBP_OPERATION_NONE before the first call. */
    uint16_t only_started;
    struct ibp_tag_memory *tags;
    /* The number of the communicator's group (counting/partners.h), if known. */
    uint32_t group;
    bool is_grouped;
};

/* Return the entry of a communicator. At the first call for a communicator, fill the entry with the size and world
 * ranks that MPI reports. Return NULL if memory is exhausted. */
struct ibp_communicator *ibp_communicator_find(ibp_handle communicator);

/* Fill the entry of a new communicator. The lock of ibprof must be free, to avoid a deadlock. MPICH and Intel MPI take
 * a lock to report size and ranks. A sending thread may hold that lock and wait for ibprof's lock. To be called within
 * an MPI call on the communicator, so that the communicator exists. */
void ibp_communicator_learn(ibp_handle communicator);

/* Return the entry of a communicator without calling MPI, for callers that only store data in the entry. */
struct ibp_communicator *ibp_communicator_enter(ibp_handle communicator);

/* Return the first entry from index `*place` on, and set `*place` to its index. Return NULL if there is none. */
const struct ibp_communicator *ibp_communicator_at(size_t *place);

/* Return the entry of a communicator that may have been freed; NULL if there is none. */
const struct ibp_communicator *ibp_communicator_known(ibp_handle communicator);

/* Return the entry of a window; NULL if memory is exhausted. At the first call for a window, fill the entry with size
 * and world ranks. ibprof's lock must be held; the function releases the lock while it calls MPI. To be called within
 * an MPI call on the window. */
const struct ibp_communicator *ibp_window_find(ibp_handle window);

/* Forget a handle that is freed, because MPI may reuse it. */
void ibp_communicator_forget(ibp_handle handle);

/* Return the world rank of a member, or IBP_PEER_UNKNOWN. */
uint32_t ibp_communicator_peer(const struct ibp_communicator *communicator, int rank);

/* Remember that MPI created a communicator for a window. The communicator may be incomplete. */
void ibp_communicator_note_carrier(ibp_handle communicator);

/* Return the number of the call (counting/calls.h) for which MPI uses an internal tag; IBP_OPERATION_NONE if
 * unknown. */
unsigned ibp_tag_call(const struct ibp_communicator *communicator, int tag);
void ibp_tag_remember(struct ibp_communicator *communicator, int tag, unsigned call);

#endif
