/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Switch the recording and the counting of MPI calls on and off. The functions set the flags `active` and
 * `ibp_counting` of recording/process_state.h, and all state that depends on these flags.
 */
#ifndef IBPROF_COUNTING_ACTIVITY_H
#define IBPROF_COUNTING_ACTIVITY_H

#include "ibprof_recording.h"

#include <stdbool.h>

/* Begin recording MPI calls. `labels_sends`: true if the wrappers of all sending calls must set the current call
 * (counting/current_call.h). */
void ibp_activity_begin(enum ibp_source source, bool labels_sends);

void ibp_activity_end(void);

/* Switch counting off and on again, as MPI_Pcontrol does. */
void ibp_set_counting(bool on);

#endif
