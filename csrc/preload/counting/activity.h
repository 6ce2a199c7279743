/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Switch the recording and the counting of MPI calls on and off. The functions set the flags of
 * recording/process_state.h and all state that depends on them.
 */
#ifndef IBPROF_COUNTING_ACTIVITY_H
#define IBPROF_COUNTING_ACTIVITY_H

#include "ibprof_recording.h"

#include <stdbool.h>

/* Begin recording MPI calls with a source. `labels_sends`: the source cannot distinguish calls that send, so their
 * wrappers must set the current call. */
void ibp_activity_begin(enum ibp_source source, bool labels_sends);

/* End recording MPI calls. */
void ibp_activity_end(void);

/* Switch counting off and on again, as MPI_Pcontrol does. */
void ibp_set_counting(bool on);

#endif
