/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Variables by which batch systems identify a job. ibprof/profile/scheduler_job.py reads the same variables.
 */
#ifndef IBPROF_RECORDING_SCHEDULER_H
#define IBPROF_RECORDING_SCHEDULER_H

#include <stddef.h>

/* Names of the recorded variables, ended by NULL. Variables that are not set are left out of the recording. */
extern const char *const ibp_scheduler_variables[];

/* Return the text that replaces `%` and a letter in IBPROF_OUTPUT; NULL for an unknown letter. `job`: the launcher's
 * name of the job. */
const char *ibp_scheduler_value(char letter, const char *job);

#endif
