/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The state of this process: whether it has a recording, and whether MPI calls are recorded and counted. The code of
 * counting/activity.h and counting/process.h sets the state.
 *
 * A child of fork has mapped its parent's recording, and must not write to this recording. Therefore the page of the
 * state becomes zero in the child: the child records nothing, and its locks are free.
 */
#ifndef IBPROF_RECORDING_PROCESS_STATE_H
#define IBPROF_RECORDING_PROCESS_STATE_H

#include "platform/system.h"

#include <stdbool.h>

struct ibp_process_state {
    /* True while MPI calls are recorded, for example between MPI_Init and MPI_Finalize. */
    bool active;
    /* True if this process has a recording, because it is a rank, has posted work requests or uses NCCL. */
    bool recorded;
    /* The verbs lock (counting/verbs_lock.h). */
    char verbs_lock;
};

/* All zeros until ibp_process_state_open. */
extern IBP_INTERNAL struct ibp_process_state *ibp_process_state;

/* Create the page of the state at the first call. Return 0 or a negative errno. */
int ibp_process_state_open(void);

static inline bool ibp_is_active(void)
{
    return ibp_process_state->active;
}

static inline bool ibp_is_recorded(void)
{
    return __atomic_load_n(&ibp_process_state->recorded, __ATOMIC_RELAXED);
}

/* True if operations that start now are counted; false while the program has switched counting off. */
extern IBP_INTERNAL bool ibp_counting;

#endif
