/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of MPI-4's calls for large counts, MPI_..._c. Many a library has none, and programs such as mpi4py ask for them
 * weakly and go another way when there are none: ours must not be found then. So they are not exported; where a program's call
 * leads to one that the MPI library has, ours is put before it.
 */
#ifndef IBPROF_LARGE_CALLS_H
#define IBPROF_LARGE_CALLS_H

#include "redirect.h"

#define IBP_LARGE(function) ibp_large_##function
#define IBP_DEFINE_LARGE(function, ...) static int IBP_LARGE(function)(__VA_ARGS__)

/* Puts them into all that is loaded, before MPI is initialised. */
void ibp_wrap_large_calls(void);
void ibp_wrap_large_one_sided(void);

/* The wrapper of a call; NULL when there is none. */
void *ibp_large_call(const char *name);
void *ibp_large_one_sided(const char *name);

#endif
