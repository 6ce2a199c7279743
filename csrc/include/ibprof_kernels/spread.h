/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Traffic spread over routes: the bytes on each link direction.
 */
#ifndef IBPROF_KERNELS_SPREAD_H
#define IBPROF_KERNELS_SPREAD_H

#include "ibprof_kernels/routes.h"

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* In-trees of destinations, grown once: for each LID the hops from the leaves on, upstream before downstream. */
struct ibp_trees;

/* Grow the trees of as many destinations as `limit` bytes can hold; others are grown when they are needed. NULL when
 * memory is short. */
struct ibp_trees *ibp_trees_new(const struct ibp_routes *routes, uint64_t limit, unsigned threads);
uint64_t ibp_trees_bytes(const struct ibp_trees *trees);
void ibp_trees_free(struct ibp_trees *trees);

struct ibp_flows {
    /* Below 2^32. */
    uint64_t count;
    const int32_t *source_lid;
    const int32_t *destination_lid;
    const uint64_t *bytes;
    /* [flow], below `groups`; NULL: all 0 */
    const uint32_t *group;
    uint32_t groups;
};

/* Add each flow's bytes to the link directions on its path.
 *
 * load[end * groups + group] is added to; routed[group] and ended[reason] are set; `reason`, unless NULL, is set for
 * each flow. -EOVERFLOW: the bytes exceed 64 bits. -EINVAL: a group out of range, or too many flows. -ENOMEM. */
int ibp_spread_flows(const struct ibp_routes *routes, const struct ibp_flows *flows, unsigned threads, uint64_t *load,
                     uint64_t *routed, uint64_t *ended, uint8_t *reason);

struct ibp_matrix {
    uint64_t rows, columns;
    /* [row] */
    const int32_t *source_lid;
    /* [column] */
    const int32_t *destination_lid;
    /* Of (row, column): bytes[row * row_step + column * column_step]. */
    const uint64_t *bytes;
    uint64_t row_step;
    /* 1, or 0: a row sends the same to every column. */
    uint64_t column_step;
};

/* Add the bytes of each (row, column) to the link directions on its path.
 *
 * load[end] is added to; ended[reason] is set. What a port sends to itself counts as IBP_SAME_PORT. `trees` may be
 * NULL. -EOVERFLOW: the bytes exceed 64 bits. -EINVAL: another column_step. -ENOMEM. */
int ibp_spread_matrix(const struct ibp_routes *routes, const struct ibp_trees *trees, const struct ibp_matrix *matrix,
                      unsigned threads, uint64_t *load, uint64_t *ended);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
