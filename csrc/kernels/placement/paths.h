/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The link directions on a path between two ports, and the bytes between two ports.
 */
#ifndef IBP_PLACEMENT_PATHS_H
#define IBP_PLACEMENT_PATHS_H

#include "ibprof_kernels/placement.h"

/* Set `path` to the path from a leaf to a port. The caller provides space for the longest path. Return the length of
 * the path. The last link direction leads to the port. If the path does not reach the port, `path` contains only the
 * artificial link direction `ends` - 1. */
uint32_t ibp_placement_follow(const struct ibp_placement_problem *problem, uint32_t rail, uint32_t leaf, uint32_t to,
                              uint32_t *path);

/* Set `path` to the path from the leaf of port `from` to port `to`, and return its length. If the problem has no table
 * of paths, compute the path in `space`. */
static inline uint32_t ibp_placement_path(const struct ibp_placement_problem *p, uint32_t rail, uint32_t from,
                                          uint32_t to, uint32_t *space, const uint32_t **path)
{
    uint32_t leaf = p->leaf_of_port[(uint64_t)rail * p->ports + from];
    if (p->path_first) {
        const uint32_t *first = p->path_first + ((uint64_t)rail * p->leaves + leaf) * p->ports + to;
        *path = p->paths + first[0];
        return first[1] - first[0];
    }
    *path = space;
    return ibp_placement_follow(p, rail, leaf, to, space);
}

/* Return the array [rail] of the bytes from one port to another. `of_neighbours` is the member `sent` or `received`. */
static inline const int64_t *ibp_placement_amounts(const struct ibp_placement_problem *p, const int64_t *of_neighbours,
                                                   uint64_t neighbour, uint32_t from, uint32_t to)
{
    int32_t row = p->row_of_rails[p->rails_of_port[from] & p->rails_of_port[to]];
    return of_neighbours + (neighbour * p->rows + (uint32_t)row) * p->rails;
}

#endif
