/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The ancestors of this process, from /proc. On each host, the launcher is one of them.
 */
#ifndef IBPROF_RECORDING_ANCESTORS_H
#define IBPROF_RECORDING_ANCESTORS_H

#include <stdbool.h>
#include <stddef.h>

#define IBP_ANCESTORS_MAX 16 /* scripts and wrappers may stand between a launcher and its rank */
#define IBP_PROCESS_NAME_BYTES 16

struct ibp_ancestor {
    long pid, parent;
    /* In ticks since the host started. PID and start time together identify a process. */
    unsigned long long started;
    /* Base name of the process's program; the kernel cuts it to 15 bytes. */
    char name[IBP_PROCESS_NAME_BYTES];
};

/* Read a process. Return false when no process has this number. */
bool ibp_ancestor_read(long pid, struct ibp_ancestor *process);

/* Read the parent of this process. */
bool ibp_ancestor_first(struct ibp_ancestor *process);

/* Go on to the parent of `process`. Return false after the last one. */
bool ibp_ancestor_next(struct ibp_ancestor *process);

/* Read the arguments of a process, each ended by NUL. Return their length, or a negative errno. */
long ibp_ancestor_arguments(const struct ibp_ancestor *process, char *arguments, size_t bytes);

#endif
