/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of the one-sided calls.
 */
#ifndef IBPROF_CALLS_ONESIDED_H
#define IBPROF_CALLS_ONESIDED_H

#include "libmpi/got.h"

/* Those for large counts, which replace the MPI library's in callers. */
extern IBP_INTERNAL const struct ibp_replacements ibp_large_one_sided;

#endif
