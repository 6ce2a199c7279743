/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Callers of MPI's bindings for Fortran. A binding calls the C function from one address for all lines of the program.
 * So the program's calls of a binding are redirected to stubs. A stub stores its return address and jumps to the
 * binding.
 */
#ifndef IBPROF_LIBMPI_CALLERS_H
#define IBPROF_LIBMPI_CALLERS_H

#include <stdbool.h>

/* Return whether a file is a library of MPI or of its bindings, from its name. */
bool ibp_is_mpi_binding(const char *path);

/* Redirect the calls of bindings in all loaded programs and libraries (idempotent). */
void ibp_bindings_hook(void);

/* Return the return address of this thread's last call of a binding, once; NULL when no stub has seen the call. */
const void *ibp_binding_caller(void);

#endif
