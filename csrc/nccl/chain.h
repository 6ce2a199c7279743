/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The next plug-in, which ibprof calls because NCCL loads only one. IBPROF_NCCL_NEXT names it in the format of
 * NCCL_PROFILER_PLUGIN. The next plug-in gets the events that it asked for, with its own handles.
 */
#ifndef IBPROF_NCCL_CHAIN_H
#define IBPROF_NCCL_CHAIN_H

#include "nccl/profiler_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* Load the next plug-in for a version of the interface, once. Return whether there is one. */
bool ibp_nccl_chain_open(unsigned version);

/* Begin a communicator of the next plug-in. Return its context or NULL, and the events that it asks for. */
struct ibp_nccl_init_arguments {
    uint64_t hash;
    const char *name;
    int nodes, ranks, rank;
    ibp_nccl_logger *logger;
};
void *ibp_nccl_chain_begin(const struct ibp_nccl_init_arguments *arguments, int *mask);
void ibp_nccl_chain_end(void *context);

/* A pair of handles: ibprof's own, and the next plug-in's. */
struct ibp_nccl_pair {
    bool is_taken;
    void *own, *next;
};

/* Return a pair for an event that the next plug-in also gets; NULL when all pairs are used. `own_parents` point to the
 * event's references to its parents, which are pairs as well. */
struct ibp_nccl_pair *ibp_nccl_chain_start(void *context, void *event, uint64_t type, void **parents[2], void *own);
void ibp_nccl_chain_record(const struct ibp_nccl_pair *pair, int state, void *arguments);
void ibp_nccl_chain_stop(struct ibp_nccl_pair *pair);

#endif
