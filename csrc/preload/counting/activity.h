/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Switches the recording and counting of MPI calls: sets the state in recording/process_state.h, and all state that
 * depends on it.
 */
#ifndef IBPROF_COUNTING_ACTIVITY_H
#define IBPROF_COUNTING_ACTIVITY_H

#include "ibprof_recording.h"

#include <stdbool.h>

/* Begin recording MPI calls, as a source sees them. The source may require labels on the calls that send. */
void ibp_activity_begin(enum ibp_source source, bool labels_sends);

/* End recording MPI calls. */
void ibp_activity_end(void);

/* Switch counting off and on again, as MPI_Pcontrol does. */
void ibp_set_counting(bool on);

#endif
