/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The name that the launcher of this process gave its job, and what identifies the launch on this host.
 *
 * A process may inherit the variables of several launchers: a shell in a Slurm step starts Hydra, which starts the
 * rank. The nearest ancestor that is a launcher decides whose variables count.
 */
#ifndef IBPROF_RECORDING_JOB_NAME_H
#define IBPROF_RECORDING_JOB_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write the job's name: the same in all processes of one MPI_COMM_WORLD on all hosts, and in no others; empty when the
 * launcher gives none. Write the launch: the same in all its processes on this host, and in no others. */
void ibp_job_identify(char *job, size_t job_bytes, char *launch, size_t launch_bytes);

/* Return the rank that the launcher gave this process, as text; empty where no launcher is known. */
const char *ibp_launcher_rank(void);

/* Read the rank that the launcher gave this process, and the number of ranks; 0 where only that is unknown. Return false
 * where no launcher gave one. Launchers of AI jobs set RANK and WORLD_SIZE, within a job step too, so they count first. */
bool ibp_job_rank(uint32_t *rank, uint32_t *ranks);

#endif
