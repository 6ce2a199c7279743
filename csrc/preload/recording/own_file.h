/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Safe opening of files that will be mapped. No process may shorten a mapped file, because an access to a page that no
 * longer exists ends the program (SIGBUS). Therefore a file to be mapped must belong to this user. The file is
 * read-only even for its owner, except while the recorder opens the file.
 *
 * In folders such as /tmp, every user may create files, and can guess the names of recordings. Therefore ibprof opens a
 * file without following links or waiting for a FIFO, and uses only regular files of this user.
 */
#ifndef IBPROF_RECORDING_OWN_FILE_H
#define IBPROF_RECORDING_OWN_FILE_H

/* Create a file and open it for writing. Return the descriptor, or -1 with errno set; EPERM if the file system makes
 * another user the owner of the file. */
int ibp_own_file_create(const char *path);

/* Open a file for reading. Return the descriptor, or -1 with errno set; EEXIST if the path is not a regular file of
 * this user. */
int ibp_own_file_open(const char *path);

/* Open a file for reading and writing. `reader` is the file's descriptor from ibp_own_file_open. Return a descriptor,
 * or -1 with errno set; ESTALE if the path now belongs to another file. */
int ibp_own_file_open_to_write(const char *path, int reader);

int ibp_own_file_is_regular(int file);

#endif
