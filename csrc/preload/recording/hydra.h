/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The name of a job that Hydra, the launcher of MPICH and Intel MPI, started. Hydra does not name jobs, but on each
 * host one proxy starts all processes of the job.
 */
#ifndef IBPROF_RECORDING_HYDRA_H
#define IBPROF_RECORDING_HYDRA_H

#include "recording/ancestors.h"

#include <stdbool.h>
#include <stddef.h>

/* Write to `job` a name of this rank's job, the same name on all hosts. Write a name of this launch on this host to
 * `launch`. `proxy` is the ancestor that started the rank. If the proxy did not start this process as a rank, return
 * false and write nothing. */
bool ibp_hydra_describe(const struct ibp_ancestor *proxy, char *job, size_t job_bytes, char *launch,
                        size_t launch_bytes);

#endif
