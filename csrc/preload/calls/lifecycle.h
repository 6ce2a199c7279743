/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * From MPI's beginning to its end: when recording starts and stops. A program may begin by MPI_Init, by sessions, or by both.
 */
#ifndef IBPROF_CALLS_LIFECYCLE_H
#define IBPROF_CALLS_LIFECYCLE_H

#include "platform/system.h"

#include <stdbool.h>

/* What keeps MPI alive. */
struct ibp_lifecycle {
    /* MPI_Init was called, and MPI_Finalize not yet. */
    bool has_world;
    /* Sessions that are open. */
    int sessions;
};
extern IBP_INTERNAL struct ibp_lifecycle ibp_lifecycle;

/* Called before MPI is initialised. */
void ibp_lifecycle_prepare(void);

/* Called when MPI is ready. What begins when recording has ended is not recorded, which the recording then says. */
void ibp_lifecycle_start(void);
bool ibp_lifecycle_is_started(void);

/* Called before MPI ends; ibp_process_hand_over is called when it has ended. */
void ibp_lifecycle_stop(void);

/* Whether this thread may change regions: below MPI_THREAD_SERIALIZED only the one that may call MPI, since nothing is locked
 * and another thread's change could meet its messages. */
bool ibp_may_change_regions(void);

#endif
