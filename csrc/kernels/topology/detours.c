/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include <math.h>

#include "ibprof_kernels/topology.h"

void ibp_find_detours(const float *distance, uint32_t count, float *detour)
{
    enum { BLOCK = 32 }; /* number of rows that remain in the cache while all other rows are read */
    for (size_t i = 0; i < (size_t)count * count; i++) detour[i] = INFINITY;
    for (uint32_t begin = 0; begin < count; begin += BLOCK) {
        uint32_t end = count - begin < BLOCK ? count : begin + BLOCK;
        for (uint32_t i = 0; i < count; i++) {
            float *to = detour + (size_t)i * count;
            for (uint32_t k = begin; k < end; k++) {
                if (k == i) continue;
                const float *from = distance + (size_t)k * count;
                float first = distance[(size_t)i * count + k];
                /* A path whose middle vertex k is the destination is no detour. */
                float kept = to[k];
                for (uint32_t j = 0; j < count; j++) {
                    float through = first + from[j];
                    to[j] = through < to[j] ? through : to[j];
                }
                to[k] = kept;
            }
        }
    }
}
