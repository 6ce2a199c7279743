/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "ibprof_kernels/sums.h"

void ibp_sum(const uint64_t *values, size_t count, uint64_t sum[2])
{
    /* Sum the lower and upper 32-bit halves of the values separately. A sum of 2^32 halves fits into 64 bits, so
     * compilers can vectorise the loop. */
    const size_t block = (size_t)1 << 32;
    unsigned __int128 total = 0;
    for (size_t begin = 0; begin < count; begin += block) {
        size_t end = count - begin < block ? count : begin + block;
        uint64_t low = 0, high = 0;
        for (size_t i = begin; i < end; i++) {
            low += values[i] & 0xffffffff;
            high += values[i] >> 32;
        }
        total += ((unsigned __int128)high << 32) + low;
    }
    sum[0] = (uint64_t)total;
    sum[1] = (uint64_t)(total >> 64);
}
