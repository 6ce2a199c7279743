/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "routes/in_tree.h"

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

/* Follow one pair; `end` takes at most switches + 1 ends. Returns how many; 0 where the packet does not arrive. */
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

/* Whether the switch that sends on `end` sends packets for the tree's destination on it. */
static bool sends_on(const struct ibp_tree *tree, int32_t end)
{
    int32_t taken;
    ibp_step(tree->routes, tree->lid, tree->port, (uint32_t)tree->routes->end_switch[end], &taken);
    return taken == end;
}

int64_t ibp_find_upstream(const struct ibp_routes *routes, int32_t end, const int32_t *lid, size_t count,
                          uint64_t *offset, int32_t *from, uint64_t capacity)
{
    struct ibp_tree tree;
    uint16_t *queue = malloc(((size_t)routes->switches + 1) * sizeof *queue);
    if (!queue || ibp_tree_init(&tree, routes)) {
        free(queue);
        return -ENOMEM;
    }
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        offset[i] = found;
        if (routes->lid_port[lid[i]] == IBP_NONE) continue;
        ibp_tree_plant(&tree, (uint32_t)lid[i]);
        int32_t root = routes->end_switch[end];
        if (!sends_on(&tree, end) || ibp_tree_reason(&tree, (uint32_t)root) != IBP_DELIVERED) continue;
        /* Up the tree. It has no loops where packets arrive, so each switch is met once. */
        size_t queued = 0;
        queue[queued++] = (uint16_t)root;
        for (size_t next = 0; next < queued; next++) {
            uint32_t at = queue[next];
            if (found < capacity) from[found] = (int32_t)at;
            found++;
            for (uint32_t k = routes->into[at]; k < routes->into[at + 1]; k++)
                if (sends_on(&tree, routes->into_end[k]))
                    queue[queued++] = (uint16_t)routes->end_switch[routes->into_end[k]];
        }
    }
    offset[count] = found;
    ibp_tree_fini(&tree);
    free(queue);
    return (int64_t)found;
}
