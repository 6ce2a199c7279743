/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Pseudorandom numbers. Source: splitmix64 of Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * OOPSLA 2014.
 */
#ifndef IBPROF_KERNELS_RANDOM_H
#define IBPROF_KERNELS_RANDOM_H

#include <stdint.h>

/* The difference of successive arguments of ibp_mix. */
#define IBP_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t ibp_mix(uint64_t number)
{
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    return number ^ (number >> 31);
}

#endif
