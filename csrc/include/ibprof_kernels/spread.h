/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Sum traffic over routes: compute the bytes on each link direction.
 */
#ifndef IBPROF_KERNELS_SPREAD_H
#define IBPROF_KERNELS_SPREAD_H

#include "ibprof_kernels/routes.h"

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* In-trees of destinations. The in-tree of a LID: the hops of all routes from leaf switches to the LID. A hop is listed
 * after the hops that lead to it. */
struct ibp_trees;

/* Compute and store in-trees of destinations until the stored in-trees need `limit` bytes. All other in-trees are
 * computed again at each use. Return NULL if memory is exhausted. */
struct ibp_trees *ibp_trees_new(const struct ibp_routes *routes, uint64_t limit, unsigned threads);
uint64_t ibp_trees_bytes(const struct ibp_trees *trees);
void ibp_trees_free(struct ibp_trees *trees);

struct ibp_flows {
    /* Number of flows, below 2^32. */
    uint64_t count;
    const int32_t *source_lid;
    const int32_t *destination_lid;
    const uint64_t *bytes;
    /* [flow], the number of the flow's group, less than `groups`. NULL: all flows have group 0 */
    const uint32_t *group;
    uint32_t groups;
};

/* Add each flow's bytes to the link directions on its path. The bytes are added to load[end * groups + group]. Set
 * routed[group] to the bytes that arrive. Set ended[i] to the bytes of all paths that end for reason i (enum
 * ibp_reason). Set reason[flow] to the reason of each flow, unless `reason` is NULL. Errors: -ENOMEM; -EOVERFLOW if the
 * bytes exceed 64 bits; -EINVAL if a LID, a group or the number of flows is out of range. */
int ibp_spread_flows(const struct ibp_routes *routes, const struct ibp_flows *flows, unsigned threads, uint64_t *load,
                     uint64_t *routed, uint64_t *ended, uint8_t *reason);

struct ibp_matrix {
    uint64_t rows, columns;
    /* [row] */
    const int32_t *source_lid;
    /* [column] */
    const int32_t *destination_lid;
    /* Element (row, column) is bytes[row * row_step + column * column_step]. */
    const uint64_t *bytes;
    uint64_t row_step;
    /* 0 if each row sends the same number of bytes to all columns; otherwise 1. */
    uint64_t column_step;
};

/* Add the bytes of each (row, column) to the link directions on its path. The bytes are added to load[end]. Set
 * ended[i] to the bytes of all paths that end for reason i (enum ibp_reason). Bytes from a port to itself count as
 * IBP_SAME_PORT. `trees` may be NULL. Errors: -ENOMEM; -EOVERFLOW if the bytes exceed 64 bits; -EINVAL if column_step,
 * a LID, or the number of rows or columns is invalid. */
int ibp_spread_matrix(const struct ibp_routes *routes, const struct ibp_trees *trees, const struct ibp_matrix *matrix,
                      unsigned threads, uint64_t *load, uint64_t *ended);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
