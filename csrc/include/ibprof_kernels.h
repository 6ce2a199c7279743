/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * libibprof_kernels.so: the loops that are too slow in Python. This is the one description of what it exports: C includes
 * it, and ibprof/kernels.py declares to cffi the text between the two marker lines, which therefore holds plain structs,
 * enums, integer defines and prototypes alone.
 *
 * Calls return 0 or a negative errno unless they say otherwise. Arrays belong to the caller, which says how long they are;
 * nothing is written beyond. Nothing is printed and nothing kept from call to call, so calls from several threads do not
 * meet.
 */
#ifndef IBPROF_KERNELS_H
#define IBPROF_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* -- sums (sum.c) -- */

/* Add up values exactly: sum[0] is the lower half, sum[1] the upper half of 128 bits. */
void ibp_sum(const uint64_t *values, size_t count, uint64_t sum[2]);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
