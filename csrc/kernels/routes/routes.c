/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "routes/step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 64 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void ibp_transpose_tables(const uint8_t *table, size_t width, const int32_t *row_of, size_t switches, uint8_t *egress)
{
    for (size_t first = 0; first < switches; first += TILE)
        for (size_t lid = 0; lid < width; lid += TILE)
            for (size_t at = first; at < smaller(first + TILE, switches); at++) {
                const uint8_t *row = row_of[at] == IBP_NONE ? NULL : table + (size_t)row_of[at] * width;
                for (size_t i = lid; i < smaller(lid + TILE, width); i++)
                    egress[i * switches + at] = row ? row[i] : IBP_NO_PORT;
            }
}

/* Compute the path between a pair of LIDs. `end` has capacity for switches + 1 link directions. Return the number of
 * link directions; 0 if packets do not arrive. */
static uint32_t follow(const struct ibp_routes *routes, int32_t source_lid, int32_t destination_lid, int32_t *end,
                       uint8_t *reason)
{
    uint32_t count = 0, steps = 0;
    uint32_t place = ibp_start(routes, source_lid, destination_lid, &end[0]);
    if (end[0] != IBP_NONE) count++;
    while (place < routes->switches) {
        if (steps++ > routes->switches) {
            *reason = IBP_LOOP;
            return 0;
        }
        place = ibp_step(routes, (uint32_t)destination_lid, routes->lid_port[destination_lid], place, &end[count]);
        if (end[count] != IBP_NONE) count++;
    }
    *reason = (uint8_t)(place - routes->switches);
    return *reason == IBP_DELIVERED ? count : 0;
}

int ibp_find_paths(const struct ibp_routes *routes, const int32_t *source_lid, const int32_t *destination_lid,
                   size_t count, uint64_t *offset, int32_t *end, uint8_t *reason)
{
    int32_t *path = malloc(((size_t)routes->switches + 4) * sizeof *path);
    if (!path) return -ENOMEM;
    offset[0] = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t hops = follow(routes, source_lid[i], destination_lid[i], path, &reason[i]);
        if (end && hops) memcpy(end + offset[i], path, hops * sizeof *path);
        offset[i + 1] = offset[i] + hops;
    }
    free(path);
    return 0;
}
