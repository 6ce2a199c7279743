/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of MPI-4's calls for large counts, MPI_..._c. Many MPI libraries lack them. Programs such as mpi4py refer to
 * them weakly and use other calls where they are missing, so ibprof must not export them. Instead, bound calls of the
 * MPI library's functions are redirected.
 */
#ifndef IBPROF_CALLS_LARGE_CALLS_H
#define IBPROF_CALLS_LARGE_CALLS_H

/* Redirect such calls in all loaded libraries, before MPI is initialised. */
void ibp_wrap_large_calls(void);

/* Return the wrapper of a call; NULL when there is none. */
void *ibp_large_call(const char *name);

#endif
