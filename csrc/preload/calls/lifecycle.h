/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The start and end of recording. A program may begin MPI with MPI_Init, with sessions, or with both.
 */
#ifndef IBPROF_CALLS_LIFECYCLE_H
#define IBPROF_CALLS_LIFECYCLE_H

#include "platform/system.h"

#include <stdbool.h>

/* MPI is initialised while `has_world` is set or `sessions` is not 0. */
struct ibp_lifecycle {
    /* True if the process is between MPI_Init and MPI_Finalize. */
    bool has_world;
    int sessions;
};
extern IBP_INTERNAL struct ibp_lifecycle ibp_lifecycle;

/* Install the hooks that must exist before MPI is initialised. */
void ibp_lifecycle_prepare(void);

/* Start recording, after MPI is initialised. If recording was stopped before, note in the recording that messages are
 * missing. */
void ibp_lifecycle_start(void);
bool ibp_lifecycle_is_started(void);

/* Stop recording, before MPI ends. The caller must call ibp_process_hand_over after MPI has ended. */
void ibp_lifecycle_stop(void);

/* Return whether this thread may change regions. Below MPI_THREAD_SERIALIZED, only the thread that called
 * ibp_lifecycle_start may change regions, because ibprof takes no lock. */
bool ibp_may_change_regions(void);

#endif
