/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What names a job that Hydra started, the launcher of MPICH and its kin: it gives the processes no name, but one proxy on
 * each host starts them all.
 */
#ifndef IBPROF_RECORDING_HYDRA_H
#define IBPROF_RECORDING_HYDRA_H

#include <stdbool.h>
#include <stddef.h>

/* Names the job, alike on all its hosts, and this launch of it on this host. False, with nothing written, when no proxy started
 * this process. */
bool ibp_hydra_describe(char *job, size_t job_bytes, char *launch, size_t launch_bytes);

#endif
