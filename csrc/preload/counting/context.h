/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What a message is, without classifying it: outside of wrapped calls a point-to-point message of the application,
 * inside one a message of that call.
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

/* The counter used last for one purpose: most messages go to the same peer as the message before. */
struct ibp_recent {
    /* Members of the slot. */
    uint64_t *amount, *bins;
    /* Rank in the communicator; IBP_NO_PEER where no counter was used. */
    int peer;
    /* Of a call: of what it sends in the present region; 0 where that is not known. Of a communicator: the counter's. */
    uint32_t origin;
    uint16_t operation;
    /* It is in the list of those to be forgotten, whose next member follows. */
    bool is_listed;
    struct ibp_recent *next;
};

#define IBP_NO_PEER INT32_MIN /* neither a rank nor a constant of MPI */

/* Of a call (counting/calls.h), which is ibp_here, or of a communicator, which keeps the origin and the peer of its last
 * messages. */
struct ibp_context {
    /* Of a call: MPI_COMM_WORLD; 0 where each message must be classified. Calls at a site mostly use one communicator:
     * `sent_on` is the one of their last message, of which `send` and `isend` remember peers. */
    ibp_handle sent_on, received_on;
    /* Of a call: messages under lower tags are classified. */
    int lowest_tag;
    /* Of a call: no wrapped call is left after it, and all sends are of its operation or in standard mode. */
    bool is_outside;
    /* Of a call: all sends are MPI_Send or MPI_Isend, in standard mode. */
    bool is_of_standard_mode;
    /* Of a call: where the program made it. */
    uint32_t site;
    /* Of a communicator: number of world ranks; NULL where ranks are world ranks. */
    int size;
    uint32_t *world_rank;
    struct ibp_recent send, isend, receive;
    /* Of a call that waits in the progress loop: the record of its time; else NULL. */
    struct ibp_time *waited;
    /* Number of receives that refer to this context and have not arrived. Until then `receive.operation` stays. */
    uint64_t pending;
    /* Of a call: `sent_on` is, or was, another communicator than MPI_COMM_WORLD. */
    bool is_moved;
    /* The next one in a list: of contexts of one communicator, for receives of different operations; of communicators'
     * contexts that are out of use; of calls' contexts that are moved. */
    struct ibp_context *next;
};

/* Return the world rank of a peer, or IBP_PEER_UNKNOWN. */
static inline uint32_t ibp_context_peer(const struct ibp_context *context, int rank)
{
    if (!context->world_rank) return (uint32_t)rank;
    return rank >= 0 && rank < context->size ? context->world_rank[rank] : IBP_PEER_UNKNOWN;
}

/* Between wrapped calls, without a site. */
extern IBP_INTERNAL struct ibp_context ibp_outside;

/* The present context, and the one between wrapped calls. While several threads are in MPI, or counting is off, all
 * contexts are closed, and the one between calls is not ibp_outside. */
extern IBP_INTERNAL struct ibp_context *ibp_here, *ibp_between;

/* Compiles to plain moves; atomic because several threads write it. */
static inline struct ibp_context *ibp_get_here(void)
{
    return ibp_here;
}

static inline void ibp_set_here(struct ibp_context *context)
{
    __atomic_store_n(&ibp_here, context, __ATOMIC_RELAXED);
}

/* Inside calls, messages under lower tags belong to a nonblocking collective. Set by the source before contexts are
 * opened. */
extern IBP_INTERNAL int ibp_lowest_tag_within;

/* Set up the context of a call at a site: as ibp_outside where it only passes a send on. */
void ibp_context_begin(struct ibp_context *context, unsigned operation, uint32_t site, bool is_outside);

/* MPI_COMM_WORLD while contexts are open; else 0. */
extern IBP_INTERNAL ibp_handle ibp_contexts_world;

#define IBP_LOWEST_TAG_OF_USERS (-1) /* MPI_ANY_TAG */

/* Set what a context lets pass, by the operations of its members. */
void ibp_context_set_open(struct ibp_context *context, int lowest_tag);

/* Set an operation without counted bytes. */
void ibp_recent_begin(struct ibp_recent *recent, unsigned operation);

/* Forget all remembered slots and origins: a region has its own. */
void ibp_recents_forget(void);

/* Remember for a call at a site, by `sent_on`, the communicator of its last message. */
void ibp_context_move(struct ibp_context *context, ibp_handle communicator);

/* Undo that for all calls: a communicator is freed, or contexts are opened or closed. */
void ibp_contexts_move_back(void);

/* Remember the slot of a peer. */
void ibp_recent_set(struct ibp_recent *recent, const struct ibp_slot *slot, int peer);

/* Return the number of a call's origin for sent bytes in the present region; make it if needed. `recent` is a member
 * of the context. */
uint32_t ibp_context_origin(const struct ibp_context *context, struct ibp_recent *recent);

#endif
