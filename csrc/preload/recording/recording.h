/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The memory-mapped recording of this process: space on disk for records, reserved before it is written to.
 */
#ifndef IBPROF_RECORDING_RECORDING_H
#define IBPROF_RECORDING_RECORDING_H

#include "ibprof_recording.h"

#include <stddef.h>

/* Open this host's file of this run in the folder that `output` names (%j job, %h host; created if needed), and enter
 * this process in the file. Return its record, filled with zeros, or NULL with the reason in `why`. */
struct ibp_process *ibp_recording_open(const char *output, char *why, size_t why_bytes);

/* Return the next free record of a kind, filled with zeros; NULL without space. ibp_recording_publish adds the record
 * to the recording. */
void *ibp_recording_reserve(enum ibp_segment_kind kind);
void ibp_recording_publish(enum ibp_segment_kind kind);

/* Return the first reason why a process of this host could not record more; IBP_NOT_FULL if all could. */
enum ibp_full ibp_recording_why_full(void);

/* Return the path at which the recording was created. */
const char *ibp_recording_path(void);

/* Return the number of published records of a kind. */
uint32_t ibp_recording_used(enum ibp_segment_kind kind);

/* Return whether this process created the file. That process enters the host's ports. */
int ibp_recording_is_first(void);

/* Copy the data of this process to IBPROF_OUTPUT, if the recording is mapped from the node's own storage. The caller
 * prevents changes meanwhile. Return 0, also when there is nothing to copy, or an errno. */
int ibp_recording_copy(void);

/* Return the number of seconds between two copies; 0 when only the last copy is made. */
uint32_t ibp_recording_flush_seconds(void);

/* Leave the file after this process has copied its part. The last process removes the file from the node. */
void ibp_recording_leave(void);

#endif
