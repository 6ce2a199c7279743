/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The recording of this process: its creation, its contents, and the move to its destination.
 */
#ifndef IBPROF_COUNTING_PROCESS_H
#define IBPROF_COUNTING_PROCESS_H

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

/* Create the recording of this process, at its first work request or when MPI is ready. Later calls do nothing. Return
 * whether the process has a recording. */
bool ibp_process_open(void);

const char *ibp_process_why_not_recorded(void);

/* Record the rank that MPI reports for this process, and the source of its counters. */
void ibp_process_describe_rank(enum ibp_source source);

/* Record a rank that does not come from MPI. Do nothing if MPI has reported the rank. `ranks`: number of ranks of the
 * job; 0 if the process is not a rank. */
void ibp_process_describe_without_mpi(uint32_t rank, uint32_t ranks, enum ibp_source source, const char *library);

/* Return the record of this process. Sources may change the record's `source` and `notes`. */
struct ibp_process *ibp_process_record(void);

/* After the end of the recording: add a note about traffic that the recording lacks. */
void ibp_process_note_missing(const char *note);

/* End all regions and periodic tasks, and mark the recording as complete (IBP_PROCESS_FINALIZED). */
void ibp_process_finish(void);

/* Move the recording to its destination. Call this after MPI_Finalize, so that work requests of MPI_Finalize are
 * counted. */
void ibp_process_hand_over(void);

#endif
