/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The file systems that a recording may be mapped from.
 *
 * The server of a network file system can revoke a mapped page, which ends the program (SIGBUS). Writing the page back
 * takes as long as the server needs. On such file systems, the recording is mapped from a file on the node's own
 * storage and copied from time to time.
 */
#ifndef IBPROF_RECORDING_STORAGE_H
#define IBPROF_RECORDING_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Return whether a folder is on a file system of a server or of a user-space program. */
bool ibp_storage_is_remote(const char *folder);

/* Return this user's folder on the node's own storage, created if needed: choice number `n`, from 0. Return 0, a
 * positive errno when this choice is not available, or -1 after the last choice. */
int ibp_storage_folder(unsigned n, char *folder, size_t bytes);

/* Open or create a file without following a link, and without waiting for the other side of a FIFO. The descriptor is
 * never a standard one, even if the program has closed these. Return the descriptor, or -1 with errno set. */
int ibp_storage_open(const char *path, int flags, mode_t mode);

/* Replacements of fstat and lstat, whose symbols need glibc 2.33. Return 0, or -1 with errno set. */
int ibp_storage_status(int file, struct stat *status);
int ibp_storage_status_of(const char *path, struct stat *status);

/* Write all bytes at an offset, without raising SIGXFSZ. Return 0 or an errno. */
int ibp_storage_write(int file, const void *data, size_t bytes, size_t offset);

#endif
