/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Choice of a file system from which a recording can safely be mapped.
 *
 * On a network file system, a write may take long. The server can also revoke a mapped page, which ends the program
 * (SIGBUS). Therefore ibprof maps a file on the storage of the node, and copies it to the network file system at
 * intervals.
 */
#ifndef IBPROF_RECORDING_STORAGE_H
#define IBPROF_RECORDING_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Return whether a folder is on a network file system, or on a file system of a user-space program. */
bool ibp_storage_is_remote(const char *folder);

/* Create a folder of this user on the storage of the node if needed, and write its path. `n` is the index of a
 * candidate folder. Return 0, a positive errno if this folder is not available, or -1 if `n` is beyond the last
 * candidate. */
int ibp_storage_folder(unsigned n, char *folder, size_t bytes);

/* Open or create a file without following a link, and without waiting for the other side of a FIFO. The descriptor is
 * never 0, 1 or 2, even if the program has closed these descriptors. Return the descriptor, or -1 with errno set. */
int ibp_storage_open(const char *path, int flags, mode_t mode);

/* Replace fstat and lstat, whose symbols need glibc 2.33. Return 0, or -1 with errno set. */
int ibp_storage_status(int file, struct stat *status);
int ibp_storage_status_of(const char *path, struct stat *status);

/* Write all bytes at an offset. SIGXFSZ is not raised. Return 0 or an errno. */
int ibp_storage_write(int file, const void *data, size_t bytes, size_t offset);

#endif
