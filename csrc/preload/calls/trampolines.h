/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of the calls in mpi.def: they say which operation this thread is in, and nothing else.
 */
#ifndef IBPROF_CALLS_TRAMPOLINES_H
#define IBPROF_CALLS_TRAMPOLINES_H

#include "libmpi/got.h"

/* Those for large counts, to be put before the MPI library's. */
extern IBP_INTERNAL const struct ibp_replacements ibp_large_trampolines;

#endif
