/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The memory-mapped recording of this process: space on disk for records, reserved before it is written to.
 */
#ifndef IBPROF_RECORDING_RECORDING_H
#define IBPROF_RECORDING_RECORDING_H

#include "ibprof_recording.h"

#include <stddef.h>

/* Opens this host's file of this run in the folder that `output` names (%j job, %h host; made if need be) and enters this
 * process in it. Returns its record, whose every field is 0, or NULL with the reason in `why`. */
struct ibp_process *ibp_recording_open(const char *output, char *why, size_t why_bytes);

/* The next free record of a kind, filled with 0; NULL when no space can be had. It is not in the recording before
 * ibp_recording_publish. */
void *ibp_recording_reserve(enum ibp_segment_kind kind);
void ibp_recording_publish(enum ibp_segment_kind kind);

/* Whether any process of this host found no space for more. */
int ibp_recording_is_full(void);

/* Records of a kind published so far. */
uint32_t ibp_recording_used(enum ibp_segment_kind kind);

/* Whether this process made the file: the host's ports are entered once. */
int ibp_recording_is_first(void);

/* Where the recording is mapped from a node's own storage: copies what this process has to IBPROF_OUTPUT. The caller keeps it from
 * changing meanwhile. Returns 0 or an errno; nothing to do is 0. */
int ibp_recording_copy(void);

/* Seconds between two copies; 0 where none are to be made on the way. */
uint32_t ibp_recording_flush_seconds(void);

/* This process is done, and what it has is copied: the last one of them removes the file from the node. */
void ibp_recording_leave(void);

#endif
