/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Redirection of calls in global offset tables (GOT). In contrast to LD_PRELOAD, redirection can be limited to some
 * callers and can be undone. Redirection also affects libraries that were opened with RTLD_LOCAL.
 */
#ifndef IBPROF_LIBMPI_GOT_H
#define IBPROF_LIBMPI_GOT_H

#include "platform/system.h"

#include <stddef.h>

/* Redirect the MPI libraries' calls of a function, and write the former target to `original`. Return the number of
 * changed slots; if this number is 0, `original` is unchanged. */
int ibp_got_redirect(const char *name, void *replacement, void *original);

/* Like ibp_got_redirect, but also redirect calls from Open MPI's other libraries and its components. */
int ibp_got_redirect_in_parts(const char *name, void *replacement, void *original);

/* In the program and all libraries except MPI's, redirect the MPI calls that the dynamic linker has bound to the MPI
 * library. Unresolved weak names remain unresolved. */
struct ibp_replacement {
    const char *name;
    void *function;
};
struct ibp_replacements {
    const struct ibp_replacement *items;
    size_t count;
};
void ibp_got_redirect_users(const struct ibp_replacement *replacements, size_t count);

/* Redirect the MPI calls of all libraries except MPI's, whether or not the dynamic linker has bound these calls. The
 * redirection is permanent. `choose` returns the function to be called: `found`, or a replacement. A replacement is
 * needed only in libraries that were opened with RTLD_DEEPBIND. */
void ibp_got_redirect_deep(void *(*choose)(const char *name, void *found));

/* Like ibp_got_redirect_deep, but redirect the calls of MPI's Fortran bindings, in the program and all libraries. */
void ibp_got_redirect_bindings(void *(*choose)(const char *name, void *found));

/* Undo ibp_got_redirect, ibp_got_redirect_in_parts and ibp_got_redirect_users. */
void ibp_got_restore(void);

/* Redirect to `replacement` all calls that reach `function` by the name `name`. The redirection is permanent, because a
 * caller may be unloaded before its slot could be restored. Slots of `name` with other targets, and slots of
 * libibprof.so, remain unchanged. */
void ibp_got_redirect_all(const char *name, void *function, void *replacement);

#endif
