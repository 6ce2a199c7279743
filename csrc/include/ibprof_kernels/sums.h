/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Sums of 64-bit integers that do not overflow.
 */
#ifndef IBPROF_KERNELS_SUMS_H
#define IBPROF_KERNELS_SUMS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* Compute the exact sum of values as a number of 128 bits. The lower half is sum[0], the upper half sum[1]. */
void ibp_sum(const uint64_t *values, size_t count, uint64_t sum[2]);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
