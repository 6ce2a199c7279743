/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Communicators and windows: the world ranks of their members, and the calls that allocated their internal tags.
 */
#ifndef IBPROF_LIBMPI_COMMUNICATORS_H
#define IBPROF_LIBMPI_COMMUNICATORS_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of remembered internal tags of a communicator; later tags replace older ones. */
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
    /* Context of messages on the communicator, once they are known to be user data; owned by
     * counting/communicator_contexts.h. */
    struct ibp_context *context;
    /* NULL: ranks are world ranks. */
    uint32_t *world_rank;
    /* Size of the group that receives messages. */
    int size;
    /* `world_rank` and `size` are known. */
    bool described;
    /* An intercommunicator: ranks are ranks of the remote group. */
    bool is_between;
    /* The communicator belongs to a window: its messages carry one-sided traffic. */
    bool carries_windows;
    /* Open MPI created it for partitioned messages. */
    bool carries_partitions;
    /* `carries_partitions` is known. */
    bool is_examined;
    /* MPI_Comm_idup was called on it and sends under tags that it takes later. */
    bool is_duplicated;
    /* Number of tags that nonblocking calls took, where the library does not show it. */
    uint32_t tags_taken;
    /* Some calls were assumed to allocate no tag. */
    bool has_spared_tags;
    /* The common operation of all of these calls; IBP_OPERATION_UNATTRIBUTED for several operations, IBP_OPERATION_NONE
     * before the first call. */
    uint16_t only_started;
    struct ibp_tag_memory *tags;
    /* The number of its group (counting/partners.h), if it is known. */
    uint32_t group;
    bool is_grouped;
};

/* Return the entry of a communicator, which is described on first use; NULL without memory. */
struct ibp_communicator *ibp_communicator_find(ibp_handle communicator);

/* Describe a new communicator without ibprof's lock. MPICH and Intel MPI take their own lock to answer. Another thread
 * may hold that lock while it sends, and then waits for ibprof's lock. Call it within a call on the communicator, so
 * that the communicator exists. */
void ibp_communicator_learn(ibp_handle communicator);

/* Return the entry without asking MPI about the communicator, for callers that store data there. */
struct ibp_communicator *ibp_communicator_enter(ibp_handle communicator);

/* Return the next entry from place `*place` on, and set `*place` to its place; NULL after the last one. */
const struct ibp_communicator *ibp_communicator_at(size_t *place);

/* Return the entry of a communicator that may have been freed; NULL without an entry. */
const struct ibp_communicator *ibp_communicator_known(ibp_handle communicator);

/* Return the entry of a window, described on first use: ibprof's lock, which must be held, is released meanwhile, for
 * the same reason. NULL when there is no memory. Call it within a call on the window. */
const struct ibp_communicator *ibp_window_find(ibp_handle window);

/* Forget a handle that is freed, because its address may be reused. */
void ibp_communicator_forget(ibp_handle handle);

/* Return the world rank of a member, or IBP_PEER_UNKNOWN. */
uint32_t ibp_communicator_peer(const struct ibp_communicator *communicator, int rank);

/* Note that a communicator, which may be incomplete, was made for a window. */
void ibp_communicator_note_carrier(ibp_handle communicator);

/* Return the number of the call (counting/calls.h) that allocated an internal tag; IBP_OPERATION_NONE when it is
 * unknown. */
unsigned ibp_tag_call(const struct ibp_communicator *communicator, int tag);
void ibp_tag_remember(struct ibp_communicator *communicator, int tag, unsigned call);

#endif
