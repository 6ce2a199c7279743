/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What a message on MPI_COMM_WORLD is, with nothing to look up: outside of wrapped calls a point-to-point one of the
 * application's, within one that call's.
 */
#ifndef IBPROF_COUNTING_CONTEXT_H
#define IBPROF_COUNTING_CONTEXT_H

#include "counting/counters.h"
#include "libmpi/library.h"
#include "platform/system.h"
#include "recording/operations.h"

#include <stdint.h>

/* The counter that was used last for one purpose: many a message goes where the one before it went. */
struct ibp_recent {
    /* Of the slot. */
    uint64_t *amount, *bins;
    /* IBP_NO_PEER where there is none. */
    int peer;
    uint16_t operation;
};

#define IBP_NO_PEER INT32_MIN /* neither a rank nor one of MPI's constants */

struct ibp_context {
    /* MPI_COMM_WORLD; 0 where each message has to be looked at. */
    ibp_handle sent_on, received_on;
    /* Messages under lower ones have tags of their own. */
    int lowest_tag;
    struct ibp_recent send, isend, receive;
};

extern IBP_INTERNAL struct ibp_context ibp_outside, ibp_within[IBP_OPERATIONS + 1];

/* The one that holds now, and the one between wrapped calls. While several threads are in MPI, or what starts is not counted,
 * no message is any of them: then all are closed, and that between calls is not ibp_outside. */
extern IBP_INTERNAL struct ibp_context *ibp_here, *ibp_between;

/* Plain moves; atomic because threads write it nonetheless. */
static inline struct ibp_context *ibp_get_here(void)
{
    return ibp_here;
}

static inline void ibp_set_here(struct ibp_context *context)
{
    __atomic_store_n(&ibp_here, context, __ATOMIC_RELAXED);
}

/* Within calls: messages under lower tags are a nonblocking collective's. Set by the source before contexts are opened. */
extern IBP_INTERNAL int ibp_lowest_tag_within;

/* From now on messages on this communicator are what ibp_here says. */
void ibp_contexts_open(ibp_handle world);

/* From now on each message is looked at. */
void ibp_contexts_close(void);

/* What is counted from now on belongs to a region: peers are to be looked up again, since it has counters of its own. */
void ibp_contexts_enter_region(uint32_t region);

/* Remembers the slot of a peer. */
void ibp_recent_set(struct ibp_recent *recent, const struct ibp_slot *slot, int peer);

#endif
