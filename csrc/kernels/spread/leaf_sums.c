/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "spread/matrix.h"

#include <string.h>

/* Add four rows to the sums of their leaf, and compute each row's own sum: four streams keep the memory busy. */
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

/* Sum the rows of a leaf. Returns every bit that is set in any value. */
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

/* Sum the rows of a leaf where each row sends the same to all columns. */
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
