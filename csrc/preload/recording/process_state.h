/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The state of this process, read wherever something is counted. It is set by counting/activity.h and
 * counting/process.h.
 *
 * The state is not inherited by fork: a child shares the recording's memory, but the recording is not the child's. The
 * page of the state reads as zeros in a child, so a child records nothing and finds all locks free.
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
    /* Lock of everything that verbs calls change, except what a post adds up (counting/verbs_lock.h). */
    char verbs_lock;
};

/* All zeros until ibp_process_state_open. */
extern IBP_INTERNAL struct ibp_process_state *ibp_process_state;

/* Make the page, unless it was made already. Return 0 or a negative errno. */
int ibp_process_state_open(void);

static inline bool ibp_is_active(void)
{
    return ibp_process_state->active;
}

static inline bool ibp_is_recorded(void)
{
    return __atomic_load_n(&ibp_process_state->recorded, __ATOMIC_RELAXED);
}

/* Whether what starts now is counted: false while the program has switched counting off. */
extern IBP_INTERNAL bool ibp_counting;

#endif
