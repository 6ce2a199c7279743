/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Reads records of this process from the file of its recording. Each record is found by its kind and index.
 */
#ifndef IBPROF_RECORDING_READER_H
#define IBPROF_RECORDING_READER_H

#include "ibprof_recording.h"

struct amount {
    uint64_t bytes, messages;
};

/* Map the only file of a folder. */
void reader_open(const char *folder);

int reader_count(enum ibp_segment_kind kind);
/* Return the total size of the segments of a kind. */
uint64_t reader_bytes(enum ibp_segment_kind kind);
const void *reader_record(enum ibp_segment_kind kind, int number);

const struct ibp_process *reader_process(void);

#endif
