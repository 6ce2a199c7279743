/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "spread/matrix_threads.h"
#include "ibprof_kernels/sums.h"
#include "support/workers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 1 << 21 };

/* Sort rows by the leaf of their source. Sources without a leaf are switches, ports without a link, and CAs that are
 * connected to each other. Rows of sources without a leaf are few, and are last. */
static void sort_rows(struct ibp_matrix_spread *all)
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

/* For each row, add its bytes that arrive (`sent`) to the load of its first link, and to the arrived bytes. */
static void load_first_links(struct ibp_matrix_spread *all)
{
    for (uint64_t i = 0; i < all->begin[all->routes->leaves]; i++) {
        uint32_t row = all->of_leaf[i];
        int32_t source = all->routes->lid_port[all->matrix->source_lid[row]];
        all->load[all->routes->first[source].end] += all->sent[row];
        all->ended[IBP_DELIVERED] += all->sent[row];
    }
}

/* For rows of sources without a leaf: follow the route of each element, and add the element's bytes to the loads. */
static int spread_others(struct ibp_matrix_spread *all)
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
            bytes[column] = ibp_matrix_value(matrix, row, column);
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

/* Return whether the sum of all values fits into 64 bits. `any` is the bitwise OR of all values. */
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

/* Allocate memory in huge pages, which cause only one page fault per 2 MiB. The caller writes all of this memory. */
static uint64_t *allocate_sums(uint64_t count)
{
    size_t bytes = (count * sizeof(uint64_t) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *made = NULL;
    if (posix_memalign(&made, HUGE_PAGE, bytes ? bytes : HUGE_PAGE)) return NULL;
    madvise(made, bytes, MADV_HUGEPAGE); /* madvise is only a hint, so its errors are ignored */
    return made;
}

static void spread_part(void *context)
{
    ibp_matrix_sum_leaves(context);
    ibp_matrix_spread_columns(context);
}

static int spread_all(struct ibp_matrix_spread *all, unsigned threads)
{
    sort_rows(all);
    pthread_mutex_init(&all->merging, NULL);
    pthread_cond_init(&all->summed, NULL);
    ibp_run_workers(threads, spread_part, all);
    pthread_cond_destroy(&all->summed);
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
    struct ibp_matrix_spread all = {.routes = routes,
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
    bool allocated = all.of_leaf && all.begin && all.next_same && all.row_of && all.sum && all.sent;
    status = allocated ? spread_all(&all, threads) : -ENOMEM;
    free(all.of_leaf);
    free(all.begin);
    free(all.next_same);
    free(all.row_of);
    free(all.sum);
    free(all.sent);
    return status;
}
