/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The name that the launcher gives this process's job, and an identifier of the launch on this host.
 *
 * A process may have variables of several launchers: for example, a shell in a Slurm step starts Hydra, which starts
 * the rank. ibprof uses only the variables of the nearest launcher among the ancestors.
 */
#ifndef IBPROF_RECORDING_JOB_NAME_H
#define IBPROF_RECORDING_JOB_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write to `job` the unique name of the job, equal in all processes of one MPI_COMM_WORLD on all hosts; empty if the
 * launcher gives no name. Write to `launch` the unique identifier of the launch, equal in all processes of the launch
 * on this host. */
void ibp_job_identify(char *job, size_t job_bytes, char *launch, size_t launch_bytes);

/* Return the rank that the launcher gave this process, as text; empty if no known variable contains a rank. */
const char *ibp_launcher_rank(void);

/* Read the rank that the launcher gave this process, and the number of ranks (0 if unknown). Return false if the rank
 * is unknown. RANK and WORLD_SIZE are read first, because launchers of AI jobs set these variables even within a job
 * step of a batch system. */
bool ibp_job_rank(uint32_t *rank, uint32_t *ranks);

#endif
