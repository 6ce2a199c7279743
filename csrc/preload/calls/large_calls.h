/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of MPI-4's functions with 64-bit counts, MPI_..._c. Many MPI libraries lack these functions. Programs such
 * as mpi4py declare these functions as weak symbols. If the symbols are missing, the programs call other functions.
 * Therefore ibprof must not export wrappers with these names. Instead, ibprof redirects calls that the dynamic linker
 * has bound to the MPI library's functions.
 */
#ifndef IBPROF_CALLS_LARGE_CALLS_H
#define IBPROF_CALLS_LARGE_CALLS_H

/* In the program and all libraries except MPI's, redirect the calls of MPI's functions with 64-bit counts. Call this
 * before MPI is initialised. */
void ibp_wrap_large_calls(void);

/* Return the wrapper of the function `name`; NULL if ibprof does not wrap this function. */
void *ibp_large_call(const char *name);

#endif
