/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Between libnccl-profiler-ibprof.so and libibprof.so, which lies next to it and has the recording of the process: both
 * are of one version. The plug-in finds this by the name IBP_NCCL_RECORDER.
 */
#ifndef IBPROF_NCCL_H
#define IBPROF_NCCL_H

#include "ibprof_recording.h"

#include <stdbool.h>

#define IBP_NCCL_RECORDER "ibprof_nccl_recorder"
#define IBP_NCCL_RECORDER_VERSION 1

struct ibp_nccl_recorder {
    uint32_t version;
    /* Open the recording of this process, and note NCCL's version. Return whether there is one. */
    bool (*open)(const char *library);
    /* Set the rank of this process where neither MPI nor the launcher states it; 0, 0 withdraws it. */
    void (*set_rank)(uint32_t rank, uint32_t ranks);
    /* Return the next free record of one of NCCL's kinds, filled with zeros; NULL when there is no space. The second
     * function adds it to the recording and returns its index. One thread at a time may call them. */
    void *(*reserve)(enum ibp_segment_kind kind);
    uint32_t (*publish)(enum ibp_segment_kind kind);
    /* Whether this process is recorded now: not in a child of fork, nor at the end. Whether the program wants it. */
    bool (*is_recording)(void);
    /* The open region. */
    uint32_t (*region)(void);
    /* Ticks are those of the processor's cycle counter, if it may be read, else those of this clock. */
    bool (*has_cycles)(void);
    uint64_t (*clock_ns)(void);
    /* Copy the recording to where it belongs, if that is due. */
    void (*copy_if_due)(void);
    /* Count bytes that have no record. */
    void (*lose)(uint64_t bytes);
    /* Print one line a job. */
    void (*say)(const char *about, const char *text);
};

typedef const struct ibp_nccl_recorder *ibp_nccl_recorder_function(void);

#endif
