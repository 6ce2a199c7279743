/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The recording of this process, from its opening to its place on disk.
 */
#ifndef IBPROF_COUNTING_PROCESS_H
#define IBPROF_COUNTING_PROCESS_H

#include "ibprof_recording.h"

#include <stdbool.h>

/* Opens the recording of this process, once, at its first work request or when MPI is ready. Returns whether it has one. */
bool ibp_process_open(void);

/* Why it has none. */
const char *ibp_process_why_not_recorded(void);

/* Enters what MPI says of this process, and the source of its counters. */
void ibp_process_describe_rank(enum ibp_source source);

/* Its record: the source and the notes are for the source to change. */
struct ibp_process *ibp_process_record(void);

/* Notes what a recording that has ended does not have. */
void ibp_process_note_missing(const char *note);

/* The counters are complete. */
void ibp_process_finish(void);

/* Brings the recording to where it was asked for: called when MPI has ended. What MPI_Finalize itself posts still counts. */
void ibp_process_hand_over(void);

#endif
