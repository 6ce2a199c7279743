/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Which file systems a recording may be mapped from.
 *
 * A mapped page of a network file system can be taken back by its server, and with it the program (SIGBUS); writing it back
 * takes the time that the server likes. There a recording is mapped from a file of the node's own and copied from time to time.
 */
#ifndef IBPROF_RECORDING_STORAGE_H
#define IBPROF_RECORDING_STORAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a folder lies on a file system that a server, or a program, stands behind. */
bool ibp_storage_is_remote(const char *folder);

/* This user's folder on the node's own storage, made if need be: the n-th choice, from 0. Returns 0, a positive errno when this
 * one cannot be had, or -1 beyond the last one. */
int ibp_storage_folder(unsigned n, char *folder, size_t bytes);

/* Opens a file, or creates it; a program that has closed its standard descriptors never gets it as one of these. Returns a
 * descriptor, or -1 with errno set. */
int ibp_storage_open(const char *path, int flags);

/* Writes all of it at its place without ever raising SIGXFSZ. Returns 0 or an errno. */
int ibp_storage_write(int file, const void *data, size_t bytes, size_t offset);

#endif
