/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "spread/matrix_threads.h"
#include "routes/in_tree.h"
#include "spread/kept_trees.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_AT_A_TIME = 64 };

/* -- sums of leaves ------------------------------------------------------------------------------------------------ */

/* Add four rows of the matrix to the column sums of their leaf, and compute the sum of each row. Reads of four rows at
 * once use more of the memory bandwidth than reads of one row at a time. */
static void add_rows(const uint64_t *const from[4], uint64_t *restrict sum, uint64_t columns, uint64_t sent[4],
                     uint64_t *any)
{
    const uint64_t *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    uint64_t of_a = 0, of_b = 0, of_c = 0, of_d = 0, bits = 0;
    for (uint64_t k = 0; k < columns; k++) {
        uint64_t from_a = a[k], from_b = b[k], from_c = c[k], from_d = d[k];
        sum[k] += from_a + from_b + from_c + from_d;
        bits |= from_a | from_b | from_c | from_d;
        of_a += from_a;
        of_b += from_b;
        of_c += from_c;
        of_d += from_d;
    }
    sent[0] = of_a;
    sent[1] = of_b;
    sent[2] = of_c;
    sent[3] = of_d;
    *any |= bits;
}

static uint64_t add_row(const uint64_t *restrict from, uint64_t *restrict sum, uint64_t columns, uint64_t *any)
{
    uint64_t sent = 0, bits = 0;
    for (uint64_t k = 0; k < columns; k++) {
        sum[k] += from[k];
        sent += from[k];
        bits |= from[k];
    }
    *any |= bits;
    return sent;
}

/* Sum the rows of a leaf. Return the bitwise OR of all values. */
static uint64_t sum_leaf(struct ibp_matrix_spread *all, uint32_t leaf)
{
    const struct ibp_matrix *matrix = all->matrix;
    const uint64_t columns = matrix->columns, stop = all->begin[leaf + 1];
    uint64_t *sum = all->sum + leaf * columns, any = 0, i = all->begin[leaf];
    memset(sum, 0, columns * sizeof *sum);
    for (; i + 4 <= stop; i += 4) {
        const uint64_t *from[4];
        uint64_t sent[4];
        for (int k = 0; k < 4; k++) from[k] = matrix->bytes + all->of_leaf[i + k] * matrix->row_step;
        add_rows(from, sum, columns, sent, &any);
        for (int k = 0; k < 4; k++) all->sent[all->of_leaf[i + k]] = sent[k];
    }
    for (; i < stop; i++) {
        const uint64_t *from = matrix->bytes + all->of_leaf[i] * matrix->row_step;
        all->sent[all->of_leaf[i]] = add_row(from, sum, columns, &any);
    }
    return any;
}

/* Sum the rows of a leaf. Each row sends the same bytes to all columns. */
static void sum_leaf_of_equals(struct ibp_matrix_spread *all, uint32_t leaf)
{
    all->sum[leaf] = 0;
    for (uint64_t i = all->begin[leaf]; i < all->begin[leaf + 1]; i++) {
        uint64_t bytes = all->matrix->bytes[all->of_leaf[i] * all->matrix->row_step];
        all->sent[all->of_leaf[i]] = bytes * all->matrix->columns;
        all->sum[leaf] += bytes;
    }
}

void ibp_matrix_sum_leaves(struct ibp_matrix_spread *all)
{
    uint64_t any = 0;
    uint32_t done = 0;
    for (unsigned leaf; (leaf = atomic_fetch_add(&all->next_leaf, 1)) < all->routes->leaves; done++)
        if (all->matrix->column_step)
            any |= sum_leaf(all, leaf);
        else
            sum_leaf_of_equals(all, leaf);
    pthread_mutex_lock(&all->merging);
    all->any |= any;
    all->leaves_done += done;
    if (all->leaves_done == all->routes->leaves) pthread_cond_broadcast(&all->summed);
    while (all->leaves_done < all->routes->leaves) pthread_cond_wait(&all->summed, &all->merging);
    pthread_mutex_unlock(&all->merging);
}

/* -- columns ------------------------------------------------------------------------------------------------------- */

struct worker {
    struct ibp_tree tree;
    /* [column][leaf], bytes toward the column's destination that enter at the leaf; only the thread's present
     * columns */
    uint64_t *entering;
    /* [switches + 1], bytes that enter each switch; the last element: arrived bytes */
    uint64_t *inflow;
    /* [end] */
    uint64_t *load;
    /* [row], bytes that use no link */
    uint64_t *kept;
    uint64_t ended[IBP_REASONS];
};

/* Transpose the leaves' sums of `columns` columns, from column `first` on, so that each column's sums are
 * contiguous. */
static void enter(const struct ibp_matrix_spread *all, struct worker *worker, uint64_t first, uint64_t columns)
{
    const uint32_t leaves = all->routes->leaves;
    const uint64_t step = all->matrix->column_step;
    for (uint32_t leaf = 0; leaf < leaves; leaf++) {
        const uint64_t *sum = all->sum + (step ? leaf * all->matrix->columns + first : leaf);
        for (uint64_t k = 0; k < columns; k++) worker->entering[k * leaves + leaf] = sum[k * step];
    }
}

/* Subtract the bytes that a port sends to itself, because they use no link. */
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

/* If packets from a leaf do not arrive at the destination, subtract the bytes that enter at this leaf. */
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
            ibp_tree_begin(&worker->tree, lid);
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
    /* For the next destination, clear the sum of arrived bytes. If the destination is a switch, clear the sum of this
     * switch too. */
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
