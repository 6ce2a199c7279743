/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The ancestors of this process, from /proc. One ancestor is the launcher's process on this host.
 */
#ifndef IBPROF_RECORDING_ANCESTORS_H
#define IBPROF_RECORDING_ANCESTORS_H

#include <stdbool.h>
#include <stddef.h>

#define IBP_ANCESTORS_MAX 16 /* a launcher may start a rank through scripts and wrappers */
#define IBP_PROCESS_NAME_BYTES 16

struct ibp_ancestor {
    long pid, parent;
    /* Start time, in clock ticks since the host started. PID and start time identify a process. */
    unsigned long long started;
    /* Base name of the program, cut by the kernel to 15 bytes. */
    char name[IBP_PROCESS_NAME_BYTES];
};

/* Read the data of a process. Return false if no process has this PID. */
bool ibp_ancestor_read(long pid, struct ibp_ancestor *process);

/* Read the data of the parent of this process. */
bool ibp_ancestor_first(struct ibp_ancestor *process);

/* Replace the data of `process` by the data of its parent. Return false if `process` has no parent. */
bool ibp_ancestor_next(struct ibp_ancestor *process);

/* Read the command-line arguments of a process, each ended by NUL. Return their total length, or a negative errno. */
long ibp_ancestor_arguments(const struct ibp_ancestor *process, char *arguments, size_t bytes);

#endif
