/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What a message on MPI_COMM_WORLD is, without a look-up: outside of wrapped calls a point-to-point message of the
 * application, inside one a message of that call.
 */
#ifndef IBPROF_COUNTING_CONTEXT_H
#define IBPROF_COUNTING_CONTEXT_H

#include "counting/counters.h"
#include "libmpi/library.h"
#include "platform/system.h"
#include "recording/operations.h"

#include <stdint.h>

/* The counter used last for one purpose: most messages go to the same peer as the message before. */
struct ibp_recent {
    /* Those of the slot. */
    uint64_t *amount, *bins;
    /* IBP_NO_PEER where no counter was used. */
    int peer;
    uint16_t operation;
};

#define IBP_NO_PEER INT32_MIN /* neither a rank nor a constant of MPI */

struct ibp_context {
    /* MPI_COMM_WORLD; 0 where each message must be classified. */
    ibp_handle sent_on, received_on;
    /* Messages under lower tags are classified. */
    int lowest_tag;
    struct ibp_recent send, isend, receive;
};

extern IBP_INTERNAL struct ibp_context ibp_outside, ibp_within[IBP_OPERATIONS + 1];

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

/* Open the contexts: from now on ibp_here says what messages on this communicator are. */
void ibp_contexts_open(ibp_handle world);

/* Close the contexts: from now on each message is classified. */
void ibp_contexts_close(void);

/* Count in another region from now on. Remembered counters are forgotten, since a region has its own. */
void ibp_contexts_enter_region(uint32_t region);

/* Remember the slot of a peer. */
void ibp_recent_set(struct ibp_recent *recent, const struct ibp_slot *slot, int peer);

#endif
