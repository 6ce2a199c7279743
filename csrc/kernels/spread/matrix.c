/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A matrix is read once, row by row (source by source), since memory is fastest that way; the rows of a leaf switch are added
 * up meanwhile. What each leaf sends then runs down the in-tree of each destination. So the cost is that of reading the
 * matrix and of (leaves + the spines that are used) x destinations, not of pairs x hops.
 */
#include "ibprof_kernels/sums.h"
#include "spread/kept_trees.h"
#include "support/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { COLUMNS_AT_A_TIME = 64, HUGE_PAGE = 1 << 21 };

struct spreading {
    const struct ibp_routes *routes;
    const struct ibp_trees *trees;
    const struct ibp_matrix *matrix;
    uint32_t *of_leaf;  /* rows by the leaf switch that they enter; then those that enter none */
    uint64_t *begin;    /* [leaves + 1], where a leaf's rows begin in of_leaf */
    int32_t *next_same; /* [row], another row of the same port, or IBP_NONE */
    int32_t *row_of;    /* [port], its first row, or IBP_NONE */
    uint64_t *sum;      /* [leaf][column], what a leaf's rows send; [leaf] where they send the same to all columns */
    atomic_uint next_leaf;
    atomic_ullong next_column;
    atomic_int status;
    pthread_mutex_t merging;
    pthread_cond_t added; /* all leaves are */
    uint32_t leaves_done;
    uint64_t *load, *ended;
    uint64_t *sent; /* [row], what it puts on its own link; first what it sends, then without what never arrives */
    uint64_t any; /* every bit that is set in any value */
};

/* What one thread adds up by itself. */
struct worker {
    struct ibp_tree tree;
    uint64_t *entering; /* [column of the part][leaf] */
    uint64_t *inflow; /* [switch + 1], the last for what has arrived */
    uint64_t *load; /* [end] */
    uint64_t *kept; /* [row], of what it sends, what is on no link */
    uint64_t ended[IBP_REASONS];
};

static uint64_t value(const struct ibp_matrix *matrix, uint64_t row, uint64_t column)
{
    return matrix->bytes[row * matrix->row_step + column * matrix->column_step];
}

/* Add four rows to the sums of their leaf, and give each row's own sum: four streams keep the memory busy. */
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

/* Add up the rows of a leaf. */
static uint64_t add_leaf(struct spreading *all, uint32_t leaf)
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

/* Likewise where each row sends the same to all columns. */
static void add_leaf_of_equals(struct spreading *all, uint32_t leaf)
{
    all->sum[leaf] = 0;
    for (uint64_t i = all->begin[leaf]; i < all->begin[leaf + 1]; i++) {
        uint64_t bytes = all->matrix->bytes[all->of_leaf[i] * all->matrix->row_step];
        all->sent[all->of_leaf[i]] = bytes * all->matrix->columns;
        all->sum[leaf] += bytes;
    }
}

/* Add up leaves as long as there are any, then wait for the other threads to have done theirs. */
static void add_some_leaves(struct spreading *all)
{
    uint64_t any = 0;
    uint32_t done = 0;
    for (unsigned leaf; (leaf = atomic_fetch_add(&all->next_leaf, 1)) < all->routes->leaves; done++)
        if (all->matrix->column_step)
            any |= add_leaf(all, leaf);
        else
            add_leaf_of_equals(all, leaf);
    pthread_mutex_lock(&all->merging);
    all->any |= any;
    all->leaves_done += done;
    if (all->leaves_done == all->routes->leaves) pthread_cond_broadcast(&all->added);
    while (all->leaves_done < all->routes->leaves) pthread_cond_wait(&all->added, &all->merging);
    pthread_mutex_unlock(&all->merging);
}

/* Turn the leaves' sums of some columns round, so that those of a column lie together. */
static void enter(const struct spreading *all, struct worker *worker, uint64_t first, uint64_t columns)
{
    const uint32_t leaves = all->routes->leaves;
    const uint64_t step = all->matrix->column_step;
    for (uint32_t leaf = 0; leaf < leaves; leaf++) {
        const uint64_t *sum = all->sum + (step ? leaf * all->matrix->columns + first : leaf);
        for (uint64_t k = 0; k < columns; k++) worker->entering[k * leaves + leaf] = sum[k * step];
    }
}

/* Take back what a port sends to itself, which never leaves it. */
static void take_back_own(struct spreading *all, struct worker *worker, uint64_t column, uint64_t *entering)
{
    int32_t port = all->routes->lid_port[all->matrix->destination_lid[column]];
    for (int32_t row = all->row_of[port]; row != IBP_NONE; row = all->next_same[row]) {
        uint64_t bytes = value(all->matrix, (uint64_t)row, column);
        const struct ibp_hop *first = &all->routes->first[port];
        entering[first->to] -= bytes;
        worker->kept[row] += bytes;
        worker->ended[IBP_SAME_PORT] += bytes;
    }
}

/* Take back what a leaf's rows send to a destination that it does not arrive at. */
static void take_back_lost(struct spreading *all, struct worker *worker, uint64_t column, uint64_t *entering)
{
    int32_t port = all->routes->lid_port[all->matrix->destination_lid[column]];
    for (uint32_t leaf = 0; leaf < all->routes->leaves; leaf++) {
        enum ibp_reason reason = port == IBP_NONE ? IBP_UNKNOWN_LID : ibp_tree_reason(&worker->tree, leaf);
        if (reason == IBP_DELIVERED) continue;
        for (uint64_t i = all->begin[leaf]; i < all->begin[leaf + 1]; i++) {
            uint32_t row = all->of_leaf[i];
            uint64_t bytes = value(all->matrix, row, column);
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

static void spread_column(struct spreading *all, struct worker *worker, uint64_t column, uint64_t *entering)
{
    const struct ibp_routes *routes = all->routes;
    uint32_t lid = (uint32_t)all->matrix->destination_lid[column], count = 0;
    const struct ibp_tree_step *kept = ibp_trees_steps(all->trees, lid, &count);
    int32_t port = routes->lid_port[lid];
    if (port != IBP_NONE) take_back_own(all, worker, column, entering);
    if (!kept) {
        if (port != IBP_NONE) {
            ibp_tree_plant(&worker->tree, lid);
            for (uint32_t leaf = 0; leaf < routes->leaves; leaf++) ibp_tree_reason(&worker->tree, leaf);
        }
        take_back_lost(all, worker, column, entering);
        if (port == IBP_NONE) return;
    }
    memcpy(worker->inflow, entering, routes->leaves * sizeof *entering);
    if (kept)
        run_down_kept(worker, kept, count);
    else
        run_down_grown(worker);
    /* What is left has arrived: behind the last link, or at the switch that it was for. */
    worker->inflow[routes->switches] = 0;
    if (routes->port_switch[port] != IBP_NONE) worker->inflow[routes->port_switch[port]] = 0;
}

static int worker_init(struct worker *worker, const struct spreading *all)
{
    const struct ibp_routes *routes = all->routes;
    *worker = (struct worker){.entering = malloc(((size_t)routes->leaves * COLUMNS_AT_A_TIME + 1) * sizeof(uint64_t)),
                              .inflow = calloc((size_t)routes->switches + 1, sizeof(uint64_t)),
                              .load = calloc((size_t)routes->ends + 1, sizeof(uint64_t)),
                              .kept = calloc(all->matrix->rows + 1, sizeof(uint64_t))};
    if (!worker->entering || !worker->inflow || !worker->load || !worker->kept) return -ENOMEM;
    return ibp_tree_init(&worker->tree, routes);
}

static void worker_merge(struct worker *worker, struct spreading *all)
{
    pthread_mutex_lock(&all->merging);
    for (uint32_t end = 0; end < all->routes->ends; end++) all->load[end] += worker->load[end];
    for (uint64_t row = 0; row < all->matrix->rows; row++) all->sent[row] -= worker->kept[row];
    for (int reason = 0; reason < IBP_REASONS; reason++) all->ended[reason] += worker->ended[reason];
    pthread_mutex_unlock(&all->merging);
}

static void spread_some(void *context)
{
    struct spreading *all = context;
    struct worker worker;
    int status = worker_init(&worker, all);
    add_some_leaves(all);
    if (status) {
        all->status = status;
    } else {
        uint64_t all_columns = all->matrix->columns;
        for (uint64_t first; (first = atomic_fetch_add(&all->next_column, COLUMNS_AT_A_TIME)) < all_columns;) {
            uint64_t columns = all_columns - first < COLUMNS_AT_A_TIME ? all_columns - first : COLUMNS_AT_A_TIME;
            enter(all, &worker, first, columns);
            for (uint64_t k = 0; k < columns; k++)
                spread_column(all, &worker, first + k, worker.entering + k * all->routes->leaves);
        }
        worker_merge(&worker, all);
    }
    ibp_tree_fini(&worker.tree);
    free(worker.entering);
    free(worker.inflow);
    free(worker.load);
    free(worker.kept);
}

/* Sort rows by the leaf that they enter. Rows of other sources (switches, ports without a link, CAs cabled to one another)
 * come last: there are few of them, or none. */
static void sort_rows(struct spreading *all)
{
    const struct ibp_routes *routes = all->routes;
    const uint32_t leaves = routes->leaves;
    memset(all->begin, 0, (leaves + 3) * sizeof *all->begin);
    for (uint32_t port = 0; port < routes->ports; port++) all->row_of[port] = IBP_NONE;
    for (int placing = 0; placing < 2; placing++) {
        for (uint64_t row = 0; row < all->matrix->rows; row++) {
            int32_t port = routes->lid_port[all->matrix->source_lid[row]];
            bool enters = port != IBP_NONE && routes->port_switch[port] == IBP_NONE &&
                          routes->first[port].end != IBP_NONE && (uint32_t)routes->first[port].to < leaves;
            uint32_t leaf = enters ? (uint32_t)routes->first[port].to : leaves;
            if (!placing) {
                all->begin[leaf + 2]++;
                continue;
            }
            all->of_leaf[all->begin[leaf + 1]++] = (uint32_t)row;
            if (!enters) continue;
            all->next_same[row] = all->row_of[port];
            all->row_of[port] = (int32_t)row;
        }
        for (uint32_t leaf = 2; !placing && leaf <= leaves + 1; leaf++) all->begin[leaf] += all->begin[leaf - 1];
    }
}

/* What is left of each row has left by its own link, and has arrived. */
static void load_first_links(struct spreading *all)
{
    for (uint64_t i = 0; i < all->begin[all->routes->leaves]; i++) {
        uint32_t row = all->of_leaf[i];
        int32_t source = all->routes->lid_port[all->matrix->source_lid[row]];
        all->load[all->routes->first[source].end] += all->sent[row];
        all->ended[IBP_DELIVERED] += all->sent[row];
    }
}

/* Rows that enter no leaf go as flows. */
static int spread_others(struct spreading *all)
{
    const struct ibp_matrix *matrix = all->matrix;
    uint64_t columns = matrix->columns;
    int32_t *source = malloc((columns + 1) * sizeof *source);
    uint64_t *bytes = malloc((columns + 1) * sizeof *bytes);
    int status = source && bytes ? 0 : -ENOMEM;
    for (uint64_t i = all->begin[all->routes->leaves]; !status && i < matrix->rows; i++) {
        uint64_t row = all->of_leaf[i], routed, ended[IBP_REASONS];
        for (uint64_t column = 0; column < columns; column++) {
            source[column] = matrix->source_lid[row];
            bytes[column] = value(matrix, row, column);
            all->any |= bytes[column];
        }
        struct ibp_flows flows = {columns, source, matrix->destination_lid, bytes, NULL, 1};
        status = ibp_spread_flows(all->routes, &flows, 1, all->load, &routed, ended, NULL);
        for (int reason = 0; !status && reason < IBP_REASONS; reason++) all->ended[reason] += ended[reason];
    }
    free(source);
    free(bytes);
    return status;
}

/* Whether the values add up within 64 bits, given all bits that occur in them. */
static bool fits(const struct ibp_matrix *matrix, uint64_t any)
{
    unsigned __int128 total = (unsigned __int128)any * matrix->rows * matrix->columns;
    if (matrix->column_step && !(total >> 64)) return true;
    total = 0;
    for (uint64_t row = 0; row < matrix->rows; row++) {
        uint64_t sum[2];
        ibp_sum(matrix->bytes + row * matrix->row_step, matrix->column_step ? matrix->columns : 1, sum);
        total += (((unsigned __int128)sum[1] << 64) + sum[0]) * (matrix->column_step ? 1 : matrix->columns);
        if (total >> 64) return false;
    }
    return true;
}

static int check(const struct ibp_matrix *matrix)
{
    if (matrix->column_step > 1 || matrix->rows >= INT32_MAX || matrix->columns >= UINT32_MAX) return -EINVAL;
    for (uint64_t row = 0; row < matrix->rows; row++)
        if (matrix->source_lid[row] >> 16) return -EINVAL;
    for (uint64_t column = 0; column < matrix->columns; column++)
        if (matrix->destination_lid[column] >> 16) return -EINVAL;
    return 0;
}

/* Room that is written from end to end: in huge pages, a fault each 2 MiB. */
static uint64_t *allocate_sums(uint64_t count)
{
    size_t bytes = (count * sizeof(uint64_t) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *room = NULL;
    if (posix_memalign(&room, HUGE_PAGE, bytes ? bytes : HUGE_PAGE)) return NULL;
    madvise(room, bytes, MADV_HUGEPAGE); /* no more than a wish */
    return room;
}

static int spread_all(struct spreading *all, unsigned threads)
{
    sort_rows(all);
    pthread_mutex_init(&all->merging, NULL);
    pthread_cond_init(&all->added, NULL);
    ibp_run_workers(threads, spread_some, all);
    pthread_cond_destroy(&all->added);
    pthread_mutex_destroy(&all->merging);
    if (all->status) return all->status;
    load_first_links(all);
    int status = spread_others(all);
    if (status) return status;
    return fits(all->matrix, all->any) ? 0 : -EOVERFLOW;
}

int ibp_spread_matrix(const struct ibp_routes *routes, const struct ibp_trees *trees, const struct ibp_matrix *matrix,
                      unsigned threads, uint64_t *load, uint64_t *ended)
{
    int status = check(matrix);
    if (status) return status;
    memset(ended, 0, IBP_REASONS * sizeof *ended);
    if (!matrix->rows || !matrix->columns) return 0;
    struct spreading all = {.routes = routes,
                            .trees = trees,
                            .matrix = matrix,
                            .load = load,
                            .ended = ended,
                            .of_leaf = malloc(matrix->rows * sizeof *all.of_leaf),
                            .begin = malloc(((size_t)routes->leaves + 3) * sizeof *all.begin),
                            .next_same = malloc(matrix->rows * sizeof *all.next_same),
                            .row_of = malloc(((size_t)routes->ports + 1) * sizeof *all.row_of),
                            .sum = allocate_sums(routes->leaves * (matrix->column_step ? matrix->columns : 1)),
                            .sent = calloc(matrix->rows, sizeof *all.sent)};
    bool have_room = all.of_leaf && all.begin && all.next_same && all.row_of && all.sum && all.sent;
    status = have_room ? spread_all(&all, threads) : -ENOMEM;
    free(all.of_leaf);
    free(all.begin);
    free(all.next_same);
    free(all.row_of);
    free(all.sum);
    free(all.sent);
    return status;
}
