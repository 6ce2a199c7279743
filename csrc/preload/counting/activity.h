/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * When MPI calls are recorded and counted: sets the state in recording/process_state.h, and what depends on it.
 */
#ifndef IBPROF_COUNTING_ACTIVITY_H
#define IBPROF_COUNTING_ACTIVITY_H

#include "ibprof_recording.h"

#include <stdbool.h>

/* Begin recording MPI calls, as a source sees them. The source may need the calls that send to be labelled. */
void ibp_activity_begin(enum ibp_source source, bool labels_sends);

/* End it. */
void ibp_activity_end(void);

/* Switch counting off and on again, as MPI_Pcontrol does. */
void ibp_set_counting(bool on);

#endif
