/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Files that are mapped. Nobody may shorten a mapped file, because an access to a page that no longer exists ends the
 * program (SIGBUS). Such a file belongs to this user and is read-only, for its owner too, except while the recorder
 * opens it.
 *
 * Folders such as /tmp are open to everybody, and names can be guessed. A file is opened without following links or
 * waiting for a writer. It is used only if it has these properties.
 */
#ifndef IBPROF_RECORDING_OWN_FILE_H
#define IBPROF_RECORDING_OWN_FILE_H

/* Create a file and open it for writing. Return the descriptor, or -1 with errno set; EPERM where the file system
 * assigns the file to another user. */
int ibp_own_file_create(const char *path);

/* Open a file for reading. Return the descriptor, or -1 with errno set; EEXIST when something else has this name. */
int ibp_own_file_open(const char *path);

/* Open a file for writing too. `reader` is its descriptor from ibp_own_file_open. Return a descriptor, or -1 with errno
 * set; ESTALE when another file has the name by now. */
int ibp_own_file_open_to_write(const char *path, int reader);

/* Return whether a descriptor refers to a regular file. */
int ibp_own_file_is_regular(int file);

#endif
