/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The launcher's name of this process's job, and an identifier of the launch on this host.
 *
 * A process may inherit the variables of several launchers: a shell in a Slurm step starts Hydra, which starts the
 * rank. The nearest ancestor that is a launcher decides whose variables count.
 */
#ifndef IBPROF_RECORDING_JOB_NAME_H
#define IBPROF_RECORDING_JOB_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write the job's name: it is equal in all processes of one MPI_COMM_WORLD on all hosts, and different in all others;
 * empty when the launcher gives none. Write the launch: it is equal in all processes of the launch on this host, and
 * different in all others. */
void ibp_job_identify(char *job, size_t job_bytes, char *launch, size_t launch_bytes);

/* Return the rank that the launcher gave this process, as text; empty without a known launcher. */
const char *ibp_launcher_rank(void);

/* Read the rank that the launcher gave this process, and the number of ranks; 0 where only the number is unknown.
 * Return false without a rank. Launchers of AI jobs set RANK and WORLD_SIZE, also within a job step, so these are read
 * first. */
bool ibp_job_rank(uint32_t *rank, uint32_t *ranks);

#endif
