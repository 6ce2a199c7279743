/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The batch system's name of this job, from variables that the batch system sets. ibprof/profile/scheduler_job.py reads
 * the same variables.
 */
#ifndef IBPROF_RECORDING_SCHEDULER_H
#define IBPROF_RECORDING_SCHEDULER_H

#include <stddef.h>

/* Variables that identify a job, ended by NULL. The recording contains the variables that are set. */
extern const char *const ibp_scheduler_variables[];

/* Return the text that replaces `%` and this letter in IBPROF_OUTPUT; NULL for an unknown letter.
 * `job` is the launcher's name of the job, which is used outside batch systems. */
const char *ibp_scheduler_value(char letter, const char *job);

#endif
