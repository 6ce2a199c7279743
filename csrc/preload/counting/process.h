/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The recording of this process, from its opening to its final place on disk.
 */
#ifndef IBPROF_COUNTING_PROCESS_H
#define IBPROF_COUNTING_PROCESS_H

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

/* Open the recording of this process, once: at its first work request, or when MPI is ready. Return whether the process
 * has a recording. */
bool ibp_process_open(void);

/* Return why this process has no recording. */
const char *ibp_process_why_not_recorded(void);

/* Record the rank that MPI reports for this process, and the source of its counters. */
void ibp_process_describe_rank(enum ibp_source source);

/* Record the rank of a process if MPI does not report it, or not yet. 0 ranks: the process is not a rank. */
void ibp_process_describe_without_mpi(uint32_t rank, uint32_t ranks, enum ibp_source source, const char *library);

/* Return the process's record. A source changes its `source` and `notes`. */
struct ibp_process *ibp_process_record(void);

/* Add a note on missing traffic to a recording that has ended. */
void ibp_process_note_missing(const char *note);

/* End counting: the counters are complete. */
void ibp_process_finish(void);

/* Move the recording to its destination after the end of MPI. Requests that MPI_Finalize posts are still counted. */
void ibp_process_hand_over(void);

#endif
