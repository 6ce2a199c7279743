/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of MPI-4's functions for large counts, MPI_..._c. Many MPI libraries lack these functions. Programs such as
 * mpi4py refer to them by weak symbols, and use other functions if these are missing. So ibprof must not export
 * wrappers with these names. Instead, ibprof redirects calls that are already bound to the MPI library's functions.
 */
#ifndef IBPROF_CALLS_LARGE_CALLS_H
#define IBPROF_CALLS_LARGE_CALLS_H

/* Redirect the calls of MPI's functions for large counts in all loaded libraries. To be called before MPI is
 * initialised. */
void ibp_wrap_large_calls(void);

/* Return the wrapper of a function by its name; NULL if there is none. */
void *ibp_large_call(const char *name);

#endif
