/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Functions of the dynamic linker. ibprof replaces dlopen (calls/dlopen.c), and finds the C library's dlopen here.
 */
#ifndef IBPROF_PLATFORM_LOADER_H
#define IBPROF_PLATFORM_LOADER_H

typedef void *ibp_open_function(const char *, int);

/* Return the C library's dlopen; NULL if there is none. */
ibp_open_function *ibp_loader_open(void);

/* Return a handle of a library if it is loaded already, otherwise NULL. */
void *ibp_loaded_library(const char *path);

#endif
