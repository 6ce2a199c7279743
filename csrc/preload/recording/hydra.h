/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The name of a job that Hydra started, the launcher of MPICH and Intel MPI. Hydra does not name jobs, but one proxy on
 * each host starts all its processes.
 */
#ifndef IBPROF_RECORDING_HYDRA_H
#define IBPROF_RECORDING_HYDRA_H

#include "recording/ancestors.h"

#include <stdbool.h>
#include <stddef.h>

/* Name the job of this rank, with the same name on all its hosts, and this launch on this host. `proxy` is the ancestor
 * that started the rank. Return false, with nothing written, when the proxy did not start this process as a rank. */
bool ibp_hydra_describe(const struct ibp_ancestor *proxy, char *job, size_t job_bytes, char *launch,
                        size_t launch_bytes);

#endif
