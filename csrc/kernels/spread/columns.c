/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "routes/in_tree.h"
#include "spread/kept_trees.h"
#include "spread/matrix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_AT_A_TIME = 64 };

/* The sums of one thread. */
struct worker {
    struct ibp_tree tree;
    /* [column of the part][leaf] */
    uint64_t *entering;
    /* [switch + 1], the last for bytes that have arrived */
    uint64_t *inflow;
    /* [end] */
    uint64_t *load;
    /* [row], bytes that are on no link */
    uint64_t *kept;
    uint64_t ended[IBP_REASONS];
};

/* Transpose the leaves' sums of some columns, so that those of a column lie together. */
static void enter(const struct ibp_matrix_spread *all, struct worker *worker, uint64_t first, uint64_t columns)
{
    const uint32_t leaves = all->routes->leaves;
    const uint64_t step = all->matrix->column_step;
    for (uint32_t leaf = 0; leaf < leaves; leaf++) {
        const uint64_t *sum = all->sum + (step ? leaf * all->matrix->columns + first : leaf);
        for (uint64_t k = 0; k < columns; k++) worker->entering[k * leaves + leaf] = sum[k * step];
    }
}

/* Subtract what a port sends to itself, which never leaves it. */
static void subtract_own(struct ibp_matrix_spread *all, struct worker *worker, uint64_t column, uint64_t *entering)
{
    int32_t port = all->routes->lid_port[all->matrix->destination_lid[column]];
    for (int32_t row = all->row_of[port]; row != IBP_NONE; row = all->next_same[row]) {
        uint64_t bytes = ibp_matrix_value(all->matrix, (uint64_t)row, column);
        const struct ibp_hop *first = &all->routes->first[port];
        entering[first->to] -= bytes;
        worker->kept[row] += bytes;
        worker->ended[IBP_SAME_PORT] += bytes;
    }
}

/* Subtract what leaves send to a destination that it does not reach. */
static void subtract_lost(struct ibp_matrix_spread *all, struct worker *worker, uint64_t column, uint64_t *entering)
{
    int32_t port = all->routes->lid_port[all->matrix->destination_lid[column]];
    for (uint32_t leaf = 0; leaf < all->routes->leaves; leaf++) {
        enum ibp_reason reason = port == IBP_NONE ? IBP_UNKNOWN_LID : ibp_tree_reason(&worker->tree, leaf);
        if (reason == IBP_DELIVERED) continue;
        for (uint64_t i = all->begin[leaf]; i < all->begin[leaf + 1]; i++) {
            uint32_t row = all->of_leaf[i];
            uint64_t bytes = ibp_matrix_value(all->matrix, row, column);
            if (port != IBP_NONE && all->routes->lid_port[all->matrix->source_lid[row]] == port) continue;
            worker->kept[row] += bytes;
            worker->ended[reason] += bytes;
        }
        entering[leaf] = 0;
    }
}

static void run_down_kept(struct worker *worker, const struct ibp_tree_step *step, uint32_t count)
{
    uint64_t *restrict inflow = worker->inflow, *restrict load = worker->load;
    for (; count--; step++) {
        uint64_t bytes = inflow[step->place];
        inflow[step->place] = 0;
        load[step->end] += bytes;
        inflow[step->next] += bytes;
    }
}

static void run_down_grown(struct worker *worker)
{
    struct ibp_tree *tree = &worker->tree;
    for (uint32_t i = tree->visits; i-- > 0;)
        if (tree->state[tree->visited[i]] == 2 + IBP_DELIVERED && !ibp_tree_is_root(tree, tree->visited[i]))
            run_down_kept(worker, &tree->by[tree->visited[i]], 1);
}

static void spread_column(struct ibp_matrix_spread *all, struct worker *worker, uint64_t column, uint64_t *entering)
{
    const struct ibp_routes *routes = all->routes;
    uint32_t lid = (uint32_t)all->matrix->destination_lid[column], count = 0;
    const struct ibp_tree_step *kept = ibp_trees_steps(all->trees, lid, &count);
    int32_t port = routes->lid_port[lid];
    if (port != IBP_NONE) subtract_own(all, worker, column, entering);
    if (!kept) {
        if (port != IBP_NONE) {
            ibp_tree_plant(&worker->tree, lid);
            for (uint32_t leaf = 0; leaf < routes->leaves; leaf++) ibp_tree_reason(&worker->tree, leaf);
        }
        subtract_lost(all, worker, column, entering);
        if (port == IBP_NONE) return;
    }
    memcpy(worker->inflow, entering, routes->leaves * sizeof *entering);
    if (kept)
        run_down_kept(worker, kept, count);
    else
        run_down_grown(worker);
    /* The rest has arrived: behind the last link, or at the switch that is the destination. */
    worker->inflow[routes->switches] = 0;
    if (routes->port_switch[port] != IBP_NONE) worker->inflow[routes->port_switch[port]] = 0;
}

static int worker_init(struct worker *worker, const struct ibp_matrix_spread *all)
{
    const struct ibp_routes *routes = all->routes;
    *worker = (struct worker){.entering = malloc(((size_t)routes->leaves * COLUMNS_AT_A_TIME + 1) * sizeof(uint64_t)),
                              .inflow = calloc((size_t)routes->switches + 1, sizeof(uint64_t)),
                              .load = calloc((size_t)routes->ends + 1, sizeof(uint64_t)),
                              .kept = calloc(all->matrix->rows + 1, sizeof(uint64_t))};
    if (!worker->entering || !worker->inflow || !worker->load || !worker->kept) return -ENOMEM;
    return ibp_tree_init(&worker->tree, routes);
}

static void worker_merge(struct worker *worker, struct ibp_matrix_spread *all)
{
    pthread_mutex_lock(&all->merging);
    for (uint32_t end = 0; end < all->routes->ends; end++) all->load[end] += worker->load[end];
    for (uint64_t row = 0; row < all->matrix->rows; row++) all->sent[row] -= worker->kept[row];
    for (int reason = 0; reason < IBP_REASONS; reason++) all->ended[reason] += worker->ended[reason];
    pthread_mutex_unlock(&all->merging);
}

static void worker_fini(struct worker *worker)
{
    ibp_tree_fini(&worker->tree);
    free(worker->entering);
    free(worker->inflow);
    free(worker->load);
    free(worker->kept);
}

void ibp_matrix_spread_columns(struct ibp_matrix_spread *all)
{
    const uint64_t total = all->matrix->columns;
    struct worker worker;
    const int status = worker_init(&worker, all);

    if (status) {
        all->status = status;
    } else {
        for (uint64_t first; (first = atomic_fetch_add(&all->next_column, COLUMNS_AT_A_TIME)) < total;) {
            const uint64_t columns = total - first < COLUMNS_AT_A_TIME ? total - first : COLUMNS_AT_A_TIME;

            enter(all, &worker, first, columns);
            for (uint64_t k = 0; k < columns; k++)
                spread_column(all, &worker, first + k, worker.entering + k * all->routes->leaves);
        }
        worker_merge(&worker, all);
    }
    worker_fini(&worker);
}
