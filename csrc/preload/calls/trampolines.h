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

#endif
