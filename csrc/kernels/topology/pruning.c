/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ibprof_kernels/topology.h"

typedef struct ibp_binary_tree tree_t;

/* Return by how much the sum of weighted squared residuals grows if two nodes get the same height. */
static double loss(double weight_a, double height_a, double weight_b, double height_b)
{
    double gap = height_a - height_b;
    return gap <= 0 ? 0 : weight_a * weight_b / (weight_a + weight_b) * gap * gap;
}

/* Merge inner children into `top` one by one, until no remaining child meets ibp_prune_tree's criterion for a merge.
 * `inner` is memory for all nodes below `top`. */
static double absorb(const tree_t *t, int32_t top, double variance, double penalty, int32_t *into, double *weight,
                     double *height, int32_t *inner)
{
    int32_t leaves = (int32_t)t->leaves;
    uint32_t count = 0, children = 2;
    double lost = 0;
    for (int side = 0; side < 2; side++) {
        int32_t below = t->child[2 * (top - leaves) + side];
        if (below >= leaves) inner[count++] = below;
    }
    for (;;) {
        uint32_t best = 0;
        double least = INFINITY;
        for (uint32_t i = 0; i < count; i++) {
            int32_t k = inner[i] - leaves;
            double cost = loss(*weight, *height, t->weight[k], t->height[k]);
            if (cost < least) {
                least = cost;
                best = i;
            }
        }
        /* Number of pairs among the children of `top` after the merge. By chance, each pair could form a node. */
        double pairs = 0.5 * children * (children + 1.0);
        if (count == 0 || least / (2 * variance) > penalty + log(pairs)) break;
        int32_t node = inner[best], k = node - leaves;
        double sum = *weight + t->weight[k];
        *height = (*weight * *height + t->weight[k] * t->height[k]) / sum;
        *weight = sum;
        lost += least;
        children++;
        into[k] = top;
        inner[best] = inner[--count];
        for (int side = 0; side < 2; side++) {
            int32_t below = t->child[2 * k + side];
            if (below >= leaves) inner[count++] = below;
        }
    }
    return lost;
}

int ibp_prune_tree(const tree_t *tree, double variance, double penalty, int32_t *into, double *weight, double *height,
                   double *lost)
{
    *lost = 0;
    if (tree->leaves < 2) return 0;
    uint32_t nodes = tree->leaves - 1;
    int32_t *inner = malloc(nodes * sizeof *inner);
    if (!inner) return -ENOMEM;
    for (uint32_t k = 0; k < nodes; k++) {
        into[k] = (int32_t)(tree->leaves + k);
        weight[k] = tree->weight[k];
        height[k] = tree->height[k];
    }
    /* A node's index is higher than its children's indices, so this loop visits parents first. */
    for (uint32_t k = nodes; k-- > 0;) {
        int32_t top = (int32_t)(tree->leaves + k);
        if (into[k] != top) continue;
        *lost += absorb(tree, top, variance, penalty, into, &weight[k], &height[k], inner);
    }
    free(inner);
    return 0;
}
