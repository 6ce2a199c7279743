/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The start and end of recording. A program may begin MPI by MPI_Init, by sessions, or by both.
 */
#ifndef IBPROF_CALLS_LIFECYCLE_H
#define IBPROF_CALLS_LIFECYCLE_H

#include "platform/system.h"

#include <stdbool.h>

/* The reasons why MPI is still initialised. */
struct ibp_lifecycle {
    /* Between MPI_Init and MPI_Finalize. */
    bool has_world;
    /* Number of open sessions. */
    int sessions;
};
extern IBP_INTERNAL struct ibp_lifecycle ibp_lifecycle;

/* Prepare hooks, before MPI is initialised. */
void ibp_lifecycle_prepare(void);

/* Start recording when MPI is ready. If recording has already ended, record a note that calls are missing. */
void ibp_lifecycle_start(void);
bool ibp_lifecycle_is_started(void);

/* Stop recording, before MPI ends; then ibp_process_hand_over is called. */
void ibp_lifecycle_stop(void);

/* Return whether this thread may change regions. Below MPI_THREAD_SERIALIZED only the thread that may call MPI does so,
 * because nothing is locked. */
bool ibp_may_change_regions(void);

#endif
