/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Callers of MPI's bindings for Fortran. A binding calls the C function for each line of the program from one
 * place of its own. So the program's calls of a binding are redirected to stubs, each of which leaves the address that
 * it returns to behind and jumps on.
 */
#ifndef IBPROF_LIBMPI_CALLERS_H
#define IBPROF_LIBMPI_CALLERS_H

#include <stdbool.h>

/* Return whether a file is a library of MPI or of its bindings, by its name. */
bool ibp_is_mpi_binding(const char *path);

/* Redirect the calls of bindings in all loaded programs and libraries (idempotent). */
void ibp_bindings_hook(void);

/* Return where this thread's call of a binding returns to, once; NULL when no stub has seen it. */
const void *ibp_binding_caller(void);

#endif
