/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Redirection of calls in global offset tables (GOT). Only the chosen callers are redirected, libraries loaded with
 * RTLD_LOCAL are reached too, and the change can be undone.
 */
#ifndef IBPROF_LIBMPI_GOT_H
#define IBPROF_LIBMPI_GOT_H

#include "platform/system.h"

#include <stddef.h>

/* Redirect a function that the loaded MPI libraries call, and write the former target to `original`. Return the number
 * of changed slots; 0, with `original` unchanged, when no MPI library calls the function. */
int ibp_got_redirect(const char *name, void *replacement, void *original);

/* As `ibp_got_redirect`, and also in the loaded parts and components of Open MPI's library. */
int ibp_got_redirect_in_parts(const char *name, void *replacement, void *original);

/* Redirect functions of the MPI library in programs and libraries that call them by a bound name. Unbound names stay
 * unbound. */
struct ibp_replacement {
    const char *name;
    void *function;
};
struct ibp_replacements {
    const struct ibp_replacement *items;
    size_t count;
};
void ibp_got_redirect_users(const struct ibp_replacement *replacements, size_t count);

/* Replace bound and unbound calls of MPI's functions, permanently, in libraries that RTLD_DEEPBIND binds past ibprof.
 * `choose` returns the function to call in place of `found`: either `found` or the replacement. */
void ibp_got_redirect_deep(void *(*choose)(const char *name, void *found));

/* Do the same for the names of MPI's bindings for Fortran, in the program too. */
void ibp_got_redirect_bindings(void *(*choose)(const char *name, void *found));

/* Undo the first three kinds of redirection. */
void ibp_got_restore(void);

/* Redirect all callers of `function` by that name, permanently, because a caller may be unloaded before the change
 * could be undone. Slots with other targets, and slots of libibprof.so, stay. */
void ibp_got_redirect_all(const char *name, void *function, void *replacement);

#endif
