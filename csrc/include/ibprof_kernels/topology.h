/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Inference of topologies from delays: trees of hosts, detours between hosts, and three-dimensional layouts of graphs.
 *
 * A binary tree has the leaves 0 to leaves - 1. The children of node leaves + k are child[2 * k] and child[2 * k + 1].
 * Children have lower numbers than their parent. The last node is the root.
 */
#ifndef IBPROF_KERNELS_TOPOLOGY_H
#define IBPROF_KERNELS_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* Compute a tree by average linkage. The matrix distance[leaf][leaf] must be symmetric and finite, and is overwritten.
 * Set size[k] to the number of leaves below node leaves + k. Set height[k] to the mean distance between leaves of one
 * child of this node and leaves of the other child. */
int ibp_average_linkage(float *distance, uint32_t leaves, int32_t *child, double *height, uint32_t *size);

/* Compute a tree by neighbour joining. distance[leaf][leaf] must be symmetric, finite and 0 on the diagonal, and is
 * overwritten. Ignore the position of the root: the root joins the two last nodes, wherever the true root is. */
int ibp_join_neighbours(double *distance, uint32_t leaves, int32_t *child);

/* Set detour[a][b] to the minimum of distance[a][k] + distance[k][b] over all k except a and b. Ignore the diagonal of
 * `detour`. */
void ibp_find_detours(const float *distance, uint32_t count, float *detour);

struct ibp_binary_tree {
    uint32_t leaves;
    const int32_t *child;
    /* [node], total weight of the pairs of leaves whose lowest common ancestor is the node. Each pair weighs 1 /
     * variance */
    const double *weight;
    /* [node], weighted mean distance of the pairs of leaves whose lowest common ancestor is the node */
    const double *height;
};

/* Merge a node into its parent if the distances do not show different heights of the two nodes. A node is kept if a
 * separate height for this node increases the log-likelihood by more than `penalty` + log(n). Here, n is the number of
 * pairs of the parent's children after the merge. The term log(n) is needed because each of these pairs could become a
 * node by chance. A node whose height is not below its parent's height is merged.
 *
 * variance: variance of a pair with weight 1. into[node]: the node into which a node was merged; for a kept node, the
 * node itself. weight[node], height[node]: the values of a kept node, including the pairs of all nodes merged into it.
 * lost: increase of the sum of weighted squared residuals that all merges cause. */
int ibp_prune_tree(const struct ibp_binary_tree *tree, double variance, double penalty, int32_t *into, double *weight,
                   double *height, double *lost);

/* Compute the stress of a graph's layout. Each edge joins two different vertices, and occurs only once. Sums are over
 * ordered pairs of vertices; d is the distance of a pair.
 *
 * Element 0 of `stress` is the sum of (d^2 - length^2)^2 over pairs with an edge. Element 1 is the sum of gamma / d^2
 * (gamma if d is 0) over pairs without an edge and with d < 1. Element 2 is the number of these pairs.
 *
 * gradient[vertex]: gradient of (stress[0] + stress[1]) / 2. Return -EDOM if a position is not a number or too far from
 * the origin. */
int ibp_stress(const double (*position)[3], uint32_t vertices, const uint32_t (*edge)[2], const double *length,
               size_t edges, double gamma, double (*gradient)[3], double stress[3]);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
