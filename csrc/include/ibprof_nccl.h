/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The interface between the plug-in libnccl-profiler-ibprof.so and libibprof.so, which records the process. Both
 * libraries have the same version and lie in one folder. The plug-in finds the interface by the name IBP_NCCL_RECORDER.
 */
#ifndef IBPROF_NCCL_H
#define IBPROF_NCCL_H

#include "ibprof_recording.h"

#include <stdbool.h>

#define IBP_NCCL_RECORDER "ibprof_nccl_recorder"
#define IBP_NCCL_RECORDER_VERSION 1

struct ibp_nccl_recorder {
    uint32_t version;
    /* Open the recording of this process, and note NCCL's version. Return whether the process has a recording. */
    bool (*open)(const char *library);
    /* Set the rank of this process where neither MPI nor the launcher states it; 0, 0 withdraws it. */
    void (*set_rank)(uint32_t rank, uint32_t ranks);
    /* Return the next free record of one of NCCL's kinds, filled with zeros; NULL without space. `publish` adds it to
     * the recording and returns its index. One thread at a time may call them. */
    void *(*reserve)(enum ibp_segment_kind kind);
    uint32_t (*publish)(enum ibp_segment_kind kind);
    /* Return whether this process records now: false in a child of fork, after the end, and while the program has
     * switched recording off. */
    bool (*is_recording)(void);
    /* Return the index of the open region. */
    uint32_t (*region)(void);
    /* Return whether ticks are cycles of the processor's counter. Otherwise they are nanoseconds of this clock. */
    bool (*has_cycles)(void);
    uint64_t (*clock_ns)(void);
    /* Copy the recording to its destination, if a copy is due. */
    void (*copy_if_due)(void);
    /* Count bytes that have no record. */
    void (*lose)(uint64_t bytes);
    /* Print one line a job. */
    void (*say)(const char *about, const char *text);
};

typedef const struct ibp_nccl_recorder *ibp_nccl_recorder_function(void);

#endif
