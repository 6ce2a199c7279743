/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * When MPI calls are recorded and counted: sets what recording/process_state.h shows, and all that follows from it.
 */
#ifndef IBPROF_COUNTING_ACTIVITY_H
#define IBPROF_COUNTING_ACTIVITY_H

#include "ibprof_recording.h"

#include <stdbool.h>

/* From now on MPI calls are recorded, as a source sees them, which may need the calls that send to be labelled. */
void ibp_activity_begin(enum ibp_source source, bool labels_sends);

/* From now on they are not. */
void ibp_activity_end(void);

/* Switches counting off and on again, as MPI_Pcontrol does. */
void ibp_set_counting(bool on);

#endif
