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

/* In-trees of destinations, each computed once: the hops from the leaves to each LID, upstream before downstream. */
struct ibp_trees;

/* Compute the in-trees of as many destinations as `limit` bytes can hold; the others are computed on demand. Returns
 * NULL without memory. */
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
 * load[end * groups + group] is increased; routed[group] and ended[reason] are set. `reason` is set for each flow,
 * unless it is NULL. -EOVERFLOW: the bytes exceed 64 bits. -EINVAL: a group out of range, or too many flows.
 * -ENOMEM. */
int ibp_spread_flows(const struct ibp_routes *routes, const struct ibp_flows *flows, unsigned threads, uint64_t *load,
                     uint64_t *routed, uint64_t *ended, uint8_t *reason);

struct ibp_matrix {
    uint64_t rows, columns;
    /* [row] */
    const int32_t *source_lid;
    /* [column] */
    const int32_t *destination_lid;
    /* The element (row, column) is bytes[row * row_step + column * column_step]. */
    const uint64_t *bytes;
    uint64_t row_step;
    /* 1, or 0 if a row sends the same bytes to every column. */
    uint64_t column_step;
};

/* Add the bytes of each (row, column) to the link directions on its path.
 *
 * load[end] is increased; ended[reason] is set. Bytes from a port to itself count as IBP_SAME_PORT. `trees` may be
 * NULL. -EOVERFLOW: the bytes exceed 64 bits. -EINVAL: column_step is neither 0 nor 1. -ENOMEM. */
int ibp_spread_matrix(const struct ibp_routes *routes, const struct ibp_trees *trees, const struct ibp_matrix *matrix,
                      unsigned threads, uint64_t *load, uint64_t *ended);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
