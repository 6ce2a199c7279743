/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The interface by which the plug-in libnccl-profiler-ibprof.so uses the recording of libibprof.so. Both libraries have
 * the same version and are in the same folder. The plug-in finds the interface by the symbol IBP_NCCL_RECORDER.
 */
#ifndef IBPROF_NCCL_H
#define IBPROF_NCCL_H

#include "ibprof_recording.h"

#include <stdbool.h>

#define IBP_NCCL_RECORDER "ibprof_nccl_recorder"
#define IBP_NCCL_RECORDER_VERSION 1

struct ibp_nccl_recorder {
    uint32_t version;
    /* Open the recording of this process, and record the version of NCCL. Return whether the process has a
     * recording. */
    bool (*open)(const char *library);
    /* Set the rank of this process, if neither MPI nor the launcher sets a rank. If `rank` and `ranks` are 0, remove
     * the rank. */
    void (*set_rank)(uint32_t rank, uint32_t ranks);
    /* `reserve`: return the next free record of a kind for NCCL, filled with zeros; NULL if the recording is full.
     * `publish`: add the record to the recording, and return its index. Only one thread at a time may use these two
     * functions. */
    void *(*reserve)(enum ibp_segment_kind kind);
    uint32_t (*publish)(enum ibp_segment_kind kind);
    /* Return whether this process records now. False in a child of fork, after the end of the recording, and while
     * recording is off. */
    bool (*is_recording)(void);
    /* Return the index of the open region. */
    uint32_t (*region)(void);
    /* Return whether ticks are cycles of the processor's counter. Otherwise, ticks are nanoseconds of `clock_ns`. */
    bool (*has_cycles)(void);
    uint64_t (*clock_ns)(void);
    /* In a process that does not use MPI: copy the recording to its destination, if IBPROF_FLUSH seconds have passed
     * since the last copy. */
    void (*copy_if_due)(void);
    /* Count bytes as lost, because the recording has no free record. */
    void (*lose)(uint64_t bytes);
    /* Print a line on stderr, once per job. */
    void (*say)(const char *about, const char *text);
};

typedef const struct ibp_nccl_recorder *ibp_nccl_recorder_function(void);

#endif
