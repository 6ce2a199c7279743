/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The state of this process. All code that counts reads it; counting/activity.h and counting/process.h set it.
 *
 * The state is not inherited by fork: a child shares the recording's memory, although the recording belongs to its
 * parent. The page of the state reads as zeros in a child, so a child records nothing and finds all locks free.
 */
#ifndef IBPROF_RECORDING_PROCESS_STATE_H
#define IBPROF_RECORDING_PROCESS_STATE_H

#include "platform/system.h"

#include <stdbool.h>

struct ibp_process_state {
    /* MPI calls are recorded: between MPI_Init and MPI_Finalize. */
    bool active;
    /* This process has a recording: it is a rank, or it posted work requests. */
    bool recorded;
    /* Lock of all state that verbs calls change, except the counters of posts (counting/verbs_lock.h). */
    char verbs_lock;
};

/* All zeros until ibp_process_state_open. */
extern IBP_INTERNAL struct ibp_process_state *ibp_process_state;

/* Create the page, once. Return 0 or a negative errno. */
int ibp_process_state_open(void);

static inline bool ibp_is_active(void)
{
    return ibp_process_state->active;
}

static inline bool ibp_is_recorded(void)
{
    return __atomic_load_n(&ibp_process_state->recorded, __ATOMIC_RELAXED);
}

/* Set while operations that start now are counted; false while the program has switched counting off. */
extern IBP_INTERNAL bool ibp_counting;

#endif
