/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "placement/paths.h"

#include <string.h>

#include "routes/step.h"

typedef struct ibp_placement_problem problem_t;

uint32_t ibp_placement_follow(const problem_t *p, uint32_t rail, uint32_t leaf, uint32_t to, uint32_t *path)
{
    const struct ibp_routes *routes = p->routes[rail];
    const uint32_t *position = p->position + p->position_first[rail];
    int32_t at = p->leaf_switch[(uint64_t)rail * p->leaves + leaf];
    int32_t lid = p->lid[(uint64_t)rail * p->ports + to];
    int32_t port = routes->lid_port[lid];
    uint32_t place = (uint32_t)at, length = 0, steps = 0;
    if (at == IBP_NONE || port == IBP_NONE) place = routes->switches + IBP_UNKNOWN_LID;
    while (place < routes->switches) {
        int32_t end;
        place = steps++ > routes->switches ? routes->switches + IBP_LOOP
                                           : ibp_step(routes, (uint32_t)lid, port, place, &end);
        if (place < routes->switches && position[end] != IBP_UNCOUNTED) path[length++] = position[end];
    }
    if (place == routes->switches + IBP_DELIVERED) {
        path[length++] = p->into_port[(uint64_t)rail * p->ports + to];
        return length;
    }
    path[0] = p->ends - 1;
    return 1;
}

uint64_t ibp_placement_paths(const problem_t *p, uint32_t *space, uint32_t *first, uint32_t *paths)
{
    uint64_t count = 0, pair = 0;
    for (uint32_t rail = 0; rail < p->rails; rail++)
        for (uint32_t leaf = 0; leaf < p->leaves; leaf++)
            for (uint32_t port = 0; port < p->ports; port++) {
                uint32_t length = ibp_placement_follow(p, rail, leaf, port, space);
                first[pair++] = (uint32_t)count;
                if (paths) memcpy(paths + count, space, length * sizeof *paths);
                count += length;
            }
    first[pair] = (uint32_t)count;
    return count;
}

void ibp_placement_load(const problem_t *p, uint32_t *space, const uint32_t *slot_of_rank, int64_t *load)
{
    memset(load, 0, p->ends * sizeof *load);
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        uint32_t slot = slot_of_rank[rank], from = p->port_of_slot[slot];
        for (uint64_t n = p->first[rank]; n < p->first[rank + 1]; n++) {
            uint32_t other = slot_of_rank[p->neighbour[n]], to = p->port_of_slot[other];
            if (p->host_of_slot[other] == p->host_of_slot[slot]) continue;
            const int64_t *bytes = ibp_placement_amounts(p, p->sent, n, from, to);
            for (uint32_t rail = 0; rail < p->rails; rail++) {
                const uint32_t *path;
                if (!bytes[rail]) continue;
                uint32_t length = ibp_placement_path(p, rail, from, to, space, &path);
                for (uint32_t i = 0; i < length; i++) load[path[i]] += bytes[rail];
                if (path[length - 1] != p->ends - 1)
                    load[p->out_of_port[(uint64_t)rail * p->ports + from]] += bytes[rail];
            }
        }
    }
}
