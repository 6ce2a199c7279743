/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The memory-mapped recording of this process: space on disk for records, reserved before it is written to.
 */
#ifndef IBPROF_RECORDING_RECORDING_H
#define IBPROF_RECORDING_RECORDING_H

#include "ibprof_recording.h"

#include <stddef.h>

/* Open this host's file of this run in the folder that `output` names (%j job, %h host; made if needed) and enter
 * this process in it. Return its record, filled with zeros, or NULL with the reason in `why`. */
struct ibp_process *ibp_recording_open(const char *output, char *why, size_t why_bytes);

/* Return the next free record of a kind, filled with zeros; NULL when there is no space. The record joins the
 * recording by ibp_recording_publish. */
void *ibp_recording_reserve(enum ibp_segment_kind kind);
void ibp_recording_publish(enum ibp_segment_kind kind);

/* Return why a process of this host could not record more: the first reason, IBP_NOT_FULL where all could. */
enum ibp_full ibp_recording_why_full(void);

/* Return where the recording was made. */
const char *ibp_recording_path(void);

/* Return the number of records of a kind published so far. */
uint32_t ibp_recording_used(enum ibp_segment_kind kind);

/* Return whether this process made the file, and so enters the host's ports. */
int ibp_recording_is_first(void);

/* Copy what this process recorded to IBPROF_OUTPUT, if the recording is mapped from the node's own storage. The
 * caller prevents changes meanwhile. Return 0, also when there is nothing to copy, or an errno. */
int ibp_recording_copy(void);

/* Return the number of seconds between two copies; 0 when only the last copy is made. */
uint32_t ibp_recording_flush_seconds(void);

/* Leave the file, when this process has copied its part: the last one removes the file from the node. */
void ibp_recording_leave(void);

#endif
