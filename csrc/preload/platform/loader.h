/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Functions of the dynamic linker. ibprof replaces dlopen (calls/dlopen.c), and finds the C library's dlopen here.
 */
#ifndef IBPROF_PLATFORM_LOADER_H
#define IBPROF_PLATFORM_LOADER_H

typedef void *ibp_open_function(const char *, int);

/* Return the C library's dlopen; NULL if the process has no dlopen. */
ibp_open_function *ibp_loader_open(void);

/* Return a handle of a loaded library; NULL if the library is not loaded. */
void *ibp_loaded_library(const char *path);

#endif
