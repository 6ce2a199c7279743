/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Callers of MPI's Fortran bindings. A binding always calls the C function from the same address, whichever line of the
 * program has called the binding. To find the line, ibprof redirects the program's calls of bindings to stubs. A stub
 * stores its return address, and jumps to the binding.
 */
#ifndef IBPROF_LIBMPI_CALLERS_H
#define IBPROF_LIBMPI_CALLERS_H

#include <stdbool.h>

/* Return whether a path names an MPI library or a library of MPI's bindings. */
bool ibp_is_mpi_binding(const char *path);

/* Redirect the calls of bindings that the program and all loaded libraries make (idempotent). */
void ibp_bindings_hook(void);

/* Return and forget the return address of this thread's last call of a binding; NULL if the call bypassed the stubs. */
const void *ibp_binding_caller(void);

#endif
