/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The dynamic linker's functions. ibprof interposes dlopen itself (calls/dlopen.c) and calls the real one.
 */
#ifndef IBPROF_PLATFORM_LOADER_H
#define IBPROF_PLATFORM_LOADER_H

typedef void *ibp_open_function(const char *, int);

/* Return the C library's dlopen; NULL when there is none. */
ibp_open_function *ibp_loader_open(void);

/* Return a handle of a library that is loaded already; NULL when it is not. */
void *ibp_loaded_library(const char *path);

#endif
