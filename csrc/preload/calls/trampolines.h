/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of the calls in mpi.def, which only set the operation that this thread is in.
 */
#ifndef IBPROF_CALLS_TRAMPOLINES_H
#define IBPROF_CALLS_TRAMPOLINES_H

#include "libmpi/got.h"

/* Those for large counts, which replace the MPI library's in callers. */
extern IBP_INTERNAL const struct ibp_replacements ibp_large_trampolines;

/* Choose what the wrappers of sends, and of calls that are only timed, do: by what is recorded now. */
void ibp_wrappers_choose(void);

#endif
