/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Programs that open an MPI library or libibverbs by hand and look its functions up by their names get ours in place of those
 * that ours would call: ctypes and Julia do so with MPI, NCCL with verbs.
 */
#ifndef IBPROF_LOOKUPS_H
#define IBPROF_LOOKUPS_H

/* A handle of a library that is loaded; NULL when it is not. */
void *ibp_loaded_library(const char *path);

#endif
