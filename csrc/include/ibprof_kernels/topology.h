/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Topologies inferred from delays: clustering of hosts into trees, detours, and positions in space.
 *
 * A binary tree has the leaves 0 to leaves - 1; node leaves + k joins child[2 * k] and child[2 * k + 1], whose numbers
 * are lower. The last node is the root.
 */
#ifndef IBPROF_KERNELS_TOPOLOGY_H
#define IBPROF_KERNELS_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* Average linkage. distance[leaf][leaf], symmetric and finite, is overwritten. size[k]: leaves below node leaves + k.
 * height[k]: mean distance between its children's leaves. */
int ibp_average_linkage(float *distance, uint32_t leaves, int32_t *child, double *height, uint32_t *size);

/* Neighbour joining. distance[leaf][leaf], symmetric, finite, 0 on the diagonal, is overwritten. The tree has no
 * natural root: the root joins the last two nodes. */
int ibp_join_neighbours(double *distance, uint32_t leaves, int32_t *child);

/* detour[a][b]: the minimum of distance[a][k] + distance[k][b] over all other k. The diagonal has no meaning. */
void ibp_find_detours(const float *distance, uint32_t count, float *detour);

struct ibp_binary_tree {
    uint32_t leaves;
    const int32_t *child;
    /* [node], weight of the pairs of leaves that meet in the node: the sum of the inverses of their variances */
    const double *weight;
    /* [node], weighted mean of these pairs */
    const double *height;
};

/* Merge nodes into their parents while that costs less than it saves. A node is kept if a separate height gains more
 * log-likelihood than `penalty` plus the log of the number of nodes that chance could have produced. A node whose
 * height is not below its parent's is merged.
 *
 * variance: variance of a pair of weight 1. into[node]: the node into which a node was merged; a kept node itself.
 * weight[node], height[node]: values of a kept node, merged nodes included. lost: increase of the fit's weighted
 * squares. */
int ibp_prune_tree(const struct ibp_binary_tree *tree, double variance, double penalty, int32_t *into, double *weight,
                   double *height, double *lost);

/* The stress of a graph's layout, over ordered pairs of vertices at distance d. An edge joins two different vertices,
 * and occurs once.
 *
 * stress[0]: the sum of (d^2 - length^2)^2 over edges. stress[1] and stress[2] are over pairs without an edge whose
 * distance d is below 1. stress[1]: the sum of gamma / d^2, or of gamma at one position. stress[2]: their number.
 *
 * gradient[vertex] is the gradient of (stress[0] + stress[1]) / 2. -EDOM: a position is not a number, or too far from
 * the origin. */
int ibp_stress(const double (*position)[3], uint32_t vertices, const uint32_t (*edge)[2], const double *length,
               size_t edges, double gamma, double (*gradient)[3], double stress[3]);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
