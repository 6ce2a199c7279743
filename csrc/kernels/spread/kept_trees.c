/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "spread/kept_trees.h"
#include "support/workers.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LIDS_AT_A_TIME = 64 };

struct ibp_trees {
    struct ibp_tree_step *steps[IBP_LIDS]; /* NULL if not kept */
    uint32_t count[IBP_LIDS];
    uint64_t bytes;
};

struct growing {
    const struct ibp_routes *routes;
    struct ibp_trees *trees;
    uint64_t limit;
    atomic_uint next_lid;
    atomic_ullong bytes;
};

/* Keep the in-tree of a destination, if packets from all leaves arrive. An in-tree with lost packets is computed again
 * at each use, because kept steps do not show lost packets. */
static void keep(struct growing *growing, struct ibp_tree *tree)
{
    const struct ibp_routes *routes = growing->routes;
    for (uint32_t leaf = 0; leaf < routes->leaves; leaf++)
        if (ibp_tree_reason(tree, leaf) != IBP_DELIVERED) return;
    size_t bytes = tree->visits * sizeof(struct ibp_tree_step);
    if (atomic_fetch_add(&growing->bytes, bytes) + bytes > growing->limit) return;
    struct ibp_tree_step *steps = malloc(bytes ? bytes : 1);
    if (!steps) return;
    uint32_t count = 0;
    for (uint32_t i = tree->visits; i-- > 0;)
        if (!ibp_tree_is_root(tree, tree->visited[i])) steps[count++] = tree->by[tree->visited[i]];
    growing->trees->steps[tree->lid] = steps;
    growing->trees->count[tree->lid] = count;
}

static void grow_some(void *context)
{
    struct growing *growing = context;
    struct ibp_tree tree;
    if (ibp_tree_init(&tree, growing->routes)) return; /* memory is exhausted, so fewer trees are kept */
    unsigned lid;
    while ((lid = atomic_fetch_add(&growing->next_lid, LIDS_AT_A_TIME)) < IBP_LIDS)
        for (unsigned stop = lid + LIDS_AT_A_TIME; lid < stop && growing->bytes < growing->limit; lid++)
            if (growing->routes->lid_port[lid] != IBP_NONE) {
                ibp_tree_begin(&tree, lid);
                keep(growing, &tree);
            }
    ibp_tree_fini(&tree);
}

struct ibp_trees *ibp_trees_new(const struct ibp_routes *routes, uint64_t limit, unsigned threads)
{
    struct ibp_trees *trees = calloc(1, sizeof *trees);
    if (!trees) return NULL;
    struct growing growing = {.routes = routes, .trees = trees, .limit = limit};
    ibp_run_workers(threads, grow_some, &growing);
    for (unsigned lid = 0; lid < IBP_LIDS; lid++) trees->bytes += trees->count[lid] * sizeof(struct ibp_tree_step);
    return trees;
}

uint64_t ibp_trees_bytes(const struct ibp_trees *trees)
{
    return trees->bytes;
}

void ibp_trees_free(struct ibp_trees *trees)
{
    if (!trees) return;
    for (unsigned lid = 0; lid < IBP_LIDS; lid++) free(trees->steps[lid]);
    free(trees);
}

const struct ibp_tree_step *ibp_trees_steps(const struct ibp_trees *trees, uint32_t lid, uint32_t *count)
{
    if (!trees) return NULL;
    *count = trees->count[lid];
    return trees->steps[lid];
}
