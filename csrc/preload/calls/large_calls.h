/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of MPI-4's calls for large counts, MPI_..._c. Many a library has none, and programs such as mpi4py ask for them
 * weakly and go another way when there are none: ours must not be found then. So they are not exported; where a program's call
 * leads to one that the MPI library has, ours is put before it.
 */
#ifndef IBPROF_CALLS_LARGE_CALLS_H
#define IBPROF_CALLS_LARGE_CALLS_H

/* Puts them into all that is loaded, before MPI is initialised. */
void ibp_wrap_large_calls(void);

/* The wrapper of a call; NULL when there is none. */
void *ibp_large_call(const char *name);

#endif
