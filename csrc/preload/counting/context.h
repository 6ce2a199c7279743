/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Usually, the context of a message shows the message's operation without classification. A message inside a wrapped
 * call belongs to this call. Other messages are point-to-point messages of the application.
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
    /* The pointers of the counter's `struct ibp_slot`. */
    uint64_t *amount, *bins;
    /* Rank of the peer in the communicator; IBP_NO_PEER if no counter is stored. */
    int peer;
    /* In the context of a call: the origin of sent bytes in the present region; 0 if not stored yet. In the context of
     * a communicator: the origin of the counter. */
    uint32_t origin;
    uint16_t operation;
    /* True if this element is in the list of elements that ibp_recents_forget resets. `next` is the next element of the
     * list. */
    bool is_listed;
    struct ibp_recent *next;
};

#define IBP_NO_PEER INT32_MIN /* neither a rank nor a constant of MPI */

/* The context of an `ibp_call` (counting/calls.h) or of a communicator. A context stores the counters of the last
 * messages. */
struct ibp_context {
    /* For a call: the communicator on which sent or received messages need no classification; 0 if each message must be
     * classified. At first, `sent_on` and `received_on` are MPI_COMM_WORLD. After a message on another communicator,
     * `sent_on` is that communicator. The peers of `send` and `isend` are ranks in `sent_on`. */
    ibp_handle sent_on, received_on;
    /* For a call: messages with a tag below `lowest_tag` must be classified, because they may belong to another
     * operation. */
    int lowest_tag;
    /* True for ibp_outside, and for a call that the wrapper only passes on, without setting the current call. Each send
     * in this context is the send of this call, or an MPI_Send or MPI_Isend outside of wrapped calls. */
    bool is_outside;
    /* For a call: true if all sends in this context have standard mode (MPI_Send or MPI_Isend). */
    bool is_of_standard_mode;
    /* For a call: the number of the call site. */
    uint32_t site;
    /* For a communicator: the number of processes, and the world rank of each process. `world_rank` is NULL if ranks in
     * the communicator equal world ranks. */
    int size;
    uint32_t *world_rank;
    struct ibp_recent send, isend, receive;
    /* For a call that waits in MPI's progress loop: the record of the waiting time; otherwise NULL. */
    struct ibp_time *waited;
    /* Number of pending receives that refer to this context. `receive.operation` may change only while this number is
     * 0. */
    uint64_t pending;
    /* For a call: true if the context is in the list of contexts that ibp_contexts_move_back resets. */
    bool is_moved;
    /* The next context in one of three lists: contexts of one communicator, unused contexts, or contexts with
     * `is_moved`. */
    struct ibp_context *next;
};

/* Return the world rank of a peer, or IBP_PEER_UNKNOWN. */
static inline uint32_t ibp_context_peer(const struct ibp_context *context, int rank)
{
    if (!context->world_rank) return (uint32_t)rank;
    return rank >= 0 && rank < context->size ? context->world_rank[rank] : IBP_PEER_UNKNOWN;
}

/* While contexts are open (counting/contexts.h): the context of messages outside of wrapped calls. */
extern IBP_INTERNAL struct ibp_context ibp_outside;

/* `ibp_here`: the present context. `ibp_between`: the context of messages outside of wrapped calls. While contexts are
 * open: ibp_outside; otherwise: the context of IBP_OPERATION_NONE. All contexts are closed while counting is off, or
 * while several threads may be in MPI. */
extern IBP_INTERNAL struct ibp_context *ibp_here, *ibp_between;

/* The store in ibp_set_here is atomic, because several threads may write the variable. An atomic store compiles to a
 * plain move. */
static inline struct ibp_context *ibp_get_here(void)
{
    return ibp_here;
}

static inline void ibp_set_here(struct ibp_context *context)
{
    __atomic_store_n(&ibp_here, context, __ATOMIC_RELAXED);
}

/* The lowest tag of messages that belong to the current call. Inside a call, messages with a tag below this value
 * belong to a nonblocking collective. The source sets the value before contexts are opened. */
extern IBP_INTERNAL int ibp_lowest_tag_within;

/* Set up the context of a call at a site. `is_outside`: true if the wrapper only passes the call on and does not set
 * the current call. */
void ibp_context_begin(struct ibp_context *context, unsigned operation, uint32_t site, bool is_outside);

/* The handle of MPI_COMM_WORLD while contexts are open; otherwise 0. */
extern IBP_INTERNAL ibp_handle ibp_contexts_world;

#define IBP_LOWEST_TAG_OF_USERS (-1) /* MPI_ANY_TAG */

/* Set `sent_on`, `received_on` and `lowest_tag`, according to the operations of `send`, `isend` and `receive`. */
void ibp_context_set_open(struct ibp_context *context, int lowest_tag);

/* Set the operation of an element, and forget its peer. */
void ibp_recent_begin(struct ibp_recent *recent, unsigned operation);

/* Forget the peers and origins of all elements. Call this when the region changes, because each region has separate
 * counters and origins. */
void ibp_recents_forget(void);

/* Set `sent_on` of a call's context to the communicator of the last message. */
void ibp_context_move(struct ibp_context *context, ibp_handle communicator);

/* Undo ibp_context_move for all calls, when a communicator is freed, or when contexts are opened or closed. */
void ibp_contexts_move_back(void);

/* Store the counter of the last message. `peer`: the peer of this message. */
void ibp_recent_set(struct ibp_recent *recent, const struct ibp_slot *slot, int peer);

/* Return the origin of the bytes that a call sends in the present region, created if needed. `recent` is `send` or
 * `isend` of the call's context. */
uint32_t ibp_context_origin(const struct ibp_context *context, struct ibp_recent *recent);

#endif
