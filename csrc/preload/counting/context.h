/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The context of messages, which avoids classifying each one. Outside of wrapped calls, a message is a point-to-point
 * message of the application. Inside a wrapped call, it is a message of that call.
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

/* The counter used last for one purpose. Most messages go to the same peer as the previous message. */
struct ibp_recent {
    /* Members of the slot. */
    uint64_t *amount, *bins;
    /* Rank in the communicator; IBP_NO_PEER where no counter was used. */
    int peer;
    /* For a call: origin of its sent bytes in the present region; 0 where unknown. For a communicator: origin of the
     * counter. */
    uint32_t origin;
    uint16_t operation;
    /* The element is in the list of elements to be forgotten; `next` is the next one in that list. */
    bool is_listed;
    struct ibp_recent *next;
};

#define IBP_NO_PEER INT32_MIN /* neither a rank nor a constant of MPI */

/* The context of a call (counting/calls.h; ibp_here points to it), or of a communicator. A communicator's context keeps
 * the origin and the peer of its last messages. */
struct ibp_context {
    /* For a call: MPI_COMM_WORLD; 0 where each message must be classified. Calls at a site mostly use one communicator:
     * `sent_on` is the communicator of the last message, and `send` and `isend` remember peers in it. */
    ibp_handle sent_on, received_on;
    /* For a call: messages with lower tags are classified. */
    int lowest_tag;
    /* For a call: it is ibp_outside or a call that its wrapper only passes on, so no wrapped call has to be left. All
     * its sends are of its operation or in standard mode. */
    bool is_outside;
    /* For a call: all its sends are MPI_Send or MPI_Isend, in standard mode. */
    bool is_of_standard_mode;
    /* For a call: its site in the program. */
    uint32_t site;
    /* For a communicator: number of world ranks; world_rank is NULL where ranks are world ranks. */
    int size;
    uint32_t *world_rank;
    struct ibp_recent send, isend, receive;
    /* For a call that waits in the progress loop: the record of its time; otherwise NULL. */
    struct ibp_time *waited;
    /* Number of pending receives that refer to this context. While there are any, `receive.operation` does not
     * change. */
    uint64_t pending;
    /* For a call: `sent_on` is, or was, a communicator other than MPI_COMM_WORLD. */
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

/* The present context, and the context between wrapped calls. While several threads are in MPI, or counting is off, all
 * contexts are closed, and ibp_between is not ibp_outside. */
extern IBP_INTERNAL struct ibp_context *ibp_here, *ibp_between;

/* Compiles to plain moves. Atomic, because several threads write it. */
static inline struct ibp_context *ibp_get_here(void)
{
    return ibp_here;
}

static inline void ibp_set_here(struct ibp_context *context)
{
    __atomic_store_n(&ibp_here, context, __ATOMIC_RELAXED);
}

/* Inside calls, messages with lower tags belong to a nonblocking collective. The source sets it before contexts are
 * opened. */
extern IBP_INTERNAL int ibp_lowest_tag_within;

/* Set up the context of a call at a site. It equals ibp_outside where the wrapper only passes a send on. */
void ibp_context_begin(struct ibp_context *context, unsigned operation, uint32_t site, bool is_outside);

/* MPI_COMM_WORLD while contexts are open; else 0. */
extern IBP_INTERNAL ibp_handle ibp_contexts_world;

#define IBP_LOWEST_TAG_OF_USERS (-1) /* MPI_ANY_TAG */

/* Set the messages that a context accepts without classification, according to the operations of its members. */
void ibp_context_set_open(struct ibp_context *context, int lowest_tag);

/* Set an operation, without counted bytes. */
void ibp_recent_begin(struct ibp_recent *recent, unsigned operation);

/* Forget all remembered slots and origins, because each region has its own. */
void ibp_recents_forget(void);

/* Remember the communicator of the last message of a call at a site, in `sent_on`. */
void ibp_context_move(struct ibp_context *context, ibp_handle communicator);

/* Undo ibp_context_move for all calls, because a communicator is freed, or contexts are opened or closed. */
void ibp_contexts_move_back(void);

/* Remember the slot of a peer. */
void ibp_recent_set(struct ibp_recent *recent, const struct ibp_slot *slot, int peer);

/* Return the number of a call's origin for sent bytes in the present region, created if needed. `recent` is a member of
 * the context. */
uint32_t ibp_context_origin(const struct ibp_context *context, struct ibp_recent *recent);

#endif
