/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The next profiler plug-in. NCCL loads only one plug-in. Therefore ibprof loads the next plug-in, which
 * IBPROF_NCCL_NEXT names in the format of NCCL_PROFILER_PLUGIN. ibprof passes on the events that the next plug-in
 * requests, with the handles that the next plug-in returned.
 */
#ifndef IBPROF_NCCL_CHAIN_H
#define IBPROF_NCCL_CHAIN_H

#include "nccl/profiler_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* Load the next plug-in for a version of the interface, at the first call of this function. Return whether there is a
 * next plug-in. */
bool ibp_nccl_chain_open(unsigned version);

/* Begin a communicator in the next plug-in. Return the plug-in's context or NULL. Set `mask` to the events that the
 * plug-in requests. */
struct ibp_nccl_init_arguments {
    uint64_t hash;
    const char *name;
    int nodes, ranks, rank;
    ibp_nccl_logger *logger;
};
void *ibp_nccl_chain_begin(const struct ibp_nccl_init_arguments *arguments, int *mask);
void ibp_nccl_chain_end(void *context);

/* A pair of handles of an event: the handle of ibprof (`own`), and of the next plug-in (`next`). */
struct ibp_nccl_pair {
    bool is_taken;
    void *own, *next;
};

/* Pass the start of an event to the next plug-in. Return a pair of handles; NULL if all pairs are used. `parents` are
 * addresses of the event's references to its parents, which are pairs too. */
struct ibp_nccl_pair *ibp_nccl_chain_start(void *context, void *event, uint64_t type, void **parents[2], void *own);
void ibp_nccl_chain_record(const struct ibp_nccl_pair *pair, int state, void *arguments);
void ibp_nccl_chain_stop(struct ibp_nccl_pair *pair);

#endif
