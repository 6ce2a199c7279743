/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Callers of MPI's Fortran bindings. A binding always calls the C function from the same address, so this address does
 * not show the line of the program. To find the line, ibprof redirects the program's calls of bindings to stubs. A stub
 * stores its return address, and jumps to the binding.
 */
#ifndef IBPROF_LIBMPI_CALLERS_H
#define IBPROF_LIBMPI_CALLERS_H

#include <stdbool.h>

/* Return whether a path names an MPI library or a library of MPI's bindings. */
bool ibp_is_mpi_binding(const char *path);

/* In the program and all loaded libraries, redirect the calls of bindings to stubs (idempotent). */
void ibp_bindings_hook(void);

/* Return and forget the return address of this thread's last call of a binding; NULL if the call bypassed the stubs. */
const void *ibp_binding_caller(void);

#endif
