/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The memory-mapped recording of this process. Disk space for records is allocated before the records are written.
 */
#ifndef IBPROF_RECORDING_RECORDING_H
#define IBPROF_RECORDING_RECORDING_H

#include "ibprof_recording.h"

#include <stddef.h>

/* Open the recording of this host in the folder that `output` names (created if needed), and add this process to the
 * recording. Return the record of the process, filled with zeros; NULL with the reason in `why` if the recording cannot
 * be opened. */
struct ibp_process *ibp_recording_open(const char *output, char *why, size_t why_bytes);

/* Return the next free record of a kind, filled with zeros; NULL if the recording is full. Readers see the record after
 * ibp_recording_publish. */
void *ibp_recording_reserve(enum ibp_segment_kind kind);
void ibp_recording_publish(enum ibp_segment_kind kind);

/* Return why the recording of this host is full, or IBP_NOT_FULL. The first process that could not add a segment has
 * stored the reason. */
enum ibp_full ibp_recording_why_full(void);

/* Return the path at which the recording was created. */
const char *ibp_recording_path(void);

/* Return the number of published records of a kind. */
uint32_t ibp_recording_used(enum ibp_segment_kind kind);

/* Return whether this process created the file. Only the process that created the file records the host's ports. */
int ibp_recording_is_first(void);

/* If the recording is mapped from the storage of the node, copy the data of this process to IBPROF_OUTPUT. The caller
 * must prevent changes of the data meanwhile. Return 0 (also if no copy is needed) or an errno. */
int ibp_recording_copy(void);

/* Return the number of seconds between two copies; 0 if there are no periodic copies. */
uint32_t ibp_recording_flush_seconds(void);

/* After this process has copied its data: stop using the file. The last process to stop removes the file from the
 * storage of the node. */
void ibp_recording_leave(void);

#endif
