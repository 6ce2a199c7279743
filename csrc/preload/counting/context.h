/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The context of messages. With it, most messages need no classification: outside of wrapped calls, a message is a
 * point-to-point message of the application, and inside a wrapped call, it is a message of the call.
 */
#ifndef IBPROF_COUNTING_CONTEXT_H
#define IBPROF_COUNTING_CONTEXT_H

#include "counting/counters.h"
#include "libmpi/library.h"
#include "platform/system.h"
#include "recording/operations.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

/* The counter of the last message of one operation. Most messages go to the same peer as the previous message. */
struct ibp_recent {
    /* Copied from the counter's slot. */
    uint64_t *amount, *bins;
    /* Rank in the communicator; IBP_NO_PEER if no counter was used. */
    int peer;
    /* For a call: the origin of its sent bytes in the present region; 0 until it is known. For a communicator: the
     * origin of the counter. */
    uint32_t origin;
    uint16_t operation;
    /* The element is in the list of elements that ibp_recents_forget resets. `next` is its successor in this list. */
    bool is_listed;
    struct ibp_recent *next;
};

#define IBP_NO_PEER INT32_MIN /* neither a rank nor a constant of MPI */

/* The context of a call (counting/calls.h; ibp_here points to it), or of a communicator. A communicator's context keeps
 * the origin and the peer of its last messages. */
struct ibp_context {
    /* For a call: the communicator whose messages need no classification; 0 if each message must be classified. Both
     * members are MPI_COMM_WORLD at first. Calls at a site mostly use one communicator: `sent_on` becomes the
     * communicator of the last message, and the peers of `send` and `isend` are ranks in it. */
    ibp_handle sent_on, received_on;
    /* For a call: messages with lower tags must be classified. */
    int lowest_tag;
    /* For a call: the context is ibp_outside, or the wrapper only passes the call on and sets no current call. Each
     * send in this context is the send of this call, or a send in standard mode (MPI_Send or MPI_Isend) outside of
     * wrapped calls. */
    bool is_outside;
    /* For a call: all its sends are MPI_Send or MPI_Isend, in standard mode. */
    bool is_of_standard_mode;
    /* For a call: the number of its site. */
    uint32_t site;
    /* For a communicator: the number of its processes, and their world ranks. `world_rank` is NULL if ranks in the
     * communicator are world ranks. */
    int size;
    uint32_t *world_rank;
    struct ibp_recent send, isend, receive;
    /* For a call that waits in the progress loop: the record that counts its waiting time; otherwise NULL. */
    struct ibp_time *waited;
    /* Number of pending receives that refer to this context. If it is not 0, `receive.operation` must not change. */
    uint64_t pending;
    /* For a call: ibp_context_move has set `sent_on` to another communicator than MPI_COMM_WORLD. */
    bool is_moved;
    /* The next context in a list: contexts of one communicator for receives of different operations, retired contexts
     * of communicators, or moved contexts of calls. */
    struct ibp_context *next;
};

/* Return the world rank of a peer, or IBP_PEER_UNKNOWN. */
static inline uint32_t ibp_context_peer(const struct ibp_context *context, int rank)
{
    if (!context->world_rank) return (uint32_t)rank;
    return rank >= 0 && rank < context->size ? context->world_rank[rank] : IBP_PEER_UNKNOWN;
}

/* The context between wrapped calls, without a site. */
extern IBP_INTERNAL struct ibp_context ibp_outside;

/* `ibp_here`: the present context. `ibp_between`: the context between wrapped calls. While several threads are in MPI,
 * or counting is off, all contexts are closed, and ibp_between is not ibp_outside. */
extern IBP_INTERNAL struct ibp_context *ibp_here, *ibp_between;

/* The store below is atomic, because several threads write the variable. An atomic store compiles to a plain move. */
static inline struct ibp_context *ibp_get_here(void)
{
    return ibp_here;
}

static inline void ibp_set_here(struct ibp_context *context)
{
    __atomic_store_n(&ibp_here, context, __ATOMIC_RELAXED);
}

/* Inside calls, a message with a lower tag belongs to a nonblocking collective. The source sets this limit before
 * contexts are opened. */
extern IBP_INTERNAL int ibp_lowest_tag_within;

/* Set up the context of a call at a site. `is_outside`: the wrapper only passes the call on, so the context is like
 * ibp_outside. */
void ibp_context_begin(struct ibp_context *context, unsigned operation, uint32_t site, bool is_outside);

/* MPI_COMM_WORLD while contexts are open; otherwise 0. */
extern IBP_INTERNAL ibp_handle ibp_contexts_world;

#define IBP_LOWEST_TAG_OF_USERS (-1) /* MPI_ANY_TAG */

/* Set which messages need no classification in a context, according to the operations of its members. */
void ibp_context_set_open(struct ibp_context *context, int lowest_tag);

/* Set the operation of an element that has no counter yet. */
void ibp_recent_begin(struct ibp_recent *recent, unsigned operation);

/* Forget all remembered counters and origins, because each region has separate counters and origins. */
void ibp_recents_forget(void);

/* Set `sent_on` to the communicator of a call's last message. */
void ibp_context_move(struct ibp_context *context, ibp_handle communicator);

/* Undo ibp_context_move for all calls. Needed when a communicator is freed, and when contexts are opened or closed. */
void ibp_contexts_move_back(void);

/* Remember the counter of a peer. */
void ibp_recent_set(struct ibp_recent *recent, const struct ibp_slot *slot, int peer);

/* Return the number of the origin of a call's sent bytes in the present region, created if needed. `recent` is a member
 * of the context. */
uint32_t ibp_context_origin(const struct ibp_context *context, struct ibp_recent *recent);

#endif
