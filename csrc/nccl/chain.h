/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The next profiler plug-in. NCCL loads only one plug-in. To use a next plug-in too, the user names it in
 * IBPROF_NCCL_NEXT, in the format of NCCL_PROFILER_PLUGIN. The next plug-in receives the events that it requests, with
 * the handles that it returned.
 */
#ifndef IBPROF_NCCL_CHAIN_H
#define IBPROF_NCCL_CHAIN_H

#include "nccl/profiler_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* At the first call, load the next plug-in for a version of the interface. Return whether a next plug-in is loaded. */
bool ibp_nccl_chain_open(unsigned version);

/* Report a new communicator to the next plug-in. Return the next plug-in's context; NULL after an error. Set `mask` to
 * the events that the next plug-in requests. */
struct ibp_nccl_init_arguments {
    uint64_t hash;
    const char *name;
    int nodes, ranks, rank;
    ibp_nccl_logger *logger;
};
void *ibp_nccl_chain_begin(const struct ibp_nccl_init_arguments *arguments, int *mask);
void ibp_nccl_chain_end(void *context);

/* Two handles of one event: ibprof's handle (`own`), and the next plug-in's handle (`next`). */
struct ibp_nccl_pair {
    bool is_taken;
    void *own, *next;
};

/* Pass the start of an event to the next plug-in. Return a pair of handles; NULL if all pairs are used. `parents`:
 * addresses of the event's members that contain the parents' handles; each handle is the address of a pair. */
struct ibp_nccl_pair *ibp_nccl_chain_start(void *context, void *event, uint64_t type, void **parents[2], void *own);
void ibp_nccl_chain_record(const struct ibp_nccl_pair *pair, int state, void *arguments);
void ibp_nccl_chain_stop(struct ibp_nccl_pair *pair);

#endif
