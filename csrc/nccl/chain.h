/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Another plug-in behind this one, since NCCL loads one: the plug-in that IBPROF_NCCL_NEXT names, as NCCL_PROFILER_PLUGIN
 * would. It gets the events that it asked for, with its own handles.
 */
#ifndef IBPROF_NCCL_CHAIN_H
#define IBPROF_NCCL_CHAIN_H

#include "nccl/profiler_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* Load it for a version of the interface, once. Return whether there is one. */
bool ibp_nccl_chain_open(unsigned version);

/* Begin a communicator of it. Return its context, or NULL, and the events that it asks for. */
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

/* Return a pair for an event that the next plug-in gets too; NULL when all are used. `own_parents` are where the event
 * names its parents, which are pairs as well. */
struct ibp_nccl_pair *ibp_nccl_chain_start(void *context, void *event, uint64_t type, void **parents[2], void *own);
void ibp_nccl_chain_record(const struct ibp_nccl_pair *pair, int state, void *arguments);
void ibp_nccl_chain_stop(struct ibp_nccl_pair *pair);

#endif
