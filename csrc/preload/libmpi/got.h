/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Redirecting the calls that the MPI library makes to another library, in its table of addresses (the GOT): nobody else's calls
 * of the same function are touched, a library that nobody else sees is reached too, and it can be undone.
 */
#ifndef IBPROF_LIBMPI_GOT_H
#define IBPROF_LIBMPI_GOT_H

#include "platform/system.h"

#include <stddef.h>

/* Makes every MPI library that is loaded call `replacement` in place of a function, and gives what it called before in
 * `original`. Returns how many places were changed; 0, and nothing given, when the function is not called. */
int ibp_got_redirect(const char *name, void *replacement, void *original);

/* Puts replacements before functions of the MPI library, where programs and libraries of theirs call them by a name that is
 * bound to it already. A name that is bound to nothing stays so. */
struct ibp_replacement {
    const char *name;
    void *function;
};
struct ibp_replacements {
    const struct ibp_replacement *items;
    size_t count;
};
void ibp_got_redirect_users(const struct ibp_replacement *replacements, size_t count);

/* Takes all of that back. */
void ibp_got_restore(void);

/* Makes everybody who calls `function` by that name call `replacement`, for good: whoever calls may be gone by the time that it
 * could be taken back. Calls that lead elsewhere, and our own, stay. */
void ibp_got_redirect_all(const char *name, void *function, void *replacement);

#endif
