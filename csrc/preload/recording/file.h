/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The recording file of this host. The first process of a launch creates the file, and the other processes join it.
 */
#ifndef IBPROF_RECORDING_FILE_H
#define IBPROF_RECORDING_FILE_H

#include "ibprof_recording.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ibp_recording_file {
    char path[PATH_MAX];
    /* Folder for copies; empty if the mapped file is already in the destination. */
    char output_folder[PATH_MAX];
    char stem[128];
    struct ibp_file_header *header;
    /* True if this process created the file. */
    bool first;
    /* The effective user when this process opened the file. Only this user may write to the file. */
    uid_t user;
};

/* Create the folder that `output` names, if needed, and write its path to `folder`. `output` may contain patterns such
 * as %j (job) and %h (host). Create or join the file in this folder. If files of the folder cannot be mapped safely
 * (network file systems), create the file on the storage of the node. Return 0 or an errno. */
int ibp_file_open(struct ibp_recording_file *recording, const char *output, char *folder, size_t bytes);

/* Reopen the file or its copy. Return a descriptor, or -1 with errno set; ESTALE if the path now belongs to another
 * file. */
int ibp_file_reopen(const struct ibp_recording_file *recording);
int ibp_file_reopen_copy(const struct ibp_recording_file *recording);

/* Allocate and map a part of the file. `offset` need not be a multiple of the page size. Return 0 or an errno. */
int ibp_file_map(int file, uint64_t offset, uint64_t bytes, void **mapped);

#endif
