/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The work of the threads that spread a matrix.
 *
 * A matrix is read once, row by row (source by source), since memory is fastest that way; the rows of a leaf switch are
 * summed meanwhile. What each leaf sends then runs down the in-tree of each destination. So the cost is that of reading
 * the matrix and of (leaves + the spines that are used) x destinations, not of pairs x hops.
 */
#ifndef IBP_SPREAD_MATRIX_THREADS_H
#define IBP_SPREAD_MATRIX_THREADS_H

#include "ibprof_kernels/spread.h"
#include "routes/step.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The state of one ibp_spread_matrix that its threads share. */
struct ibp_matrix_spread {
    const struct ibp_routes *routes;
    const struct ibp_trees *trees;
    const struct ibp_matrix *matrix;
    /* Rows by the leaf switch that they enter; then rows that enter none. */
    uint32_t *of_leaf;
    /* [leaves + 1], where a leaf's rows begin in of_leaf */
    uint64_t *begin;
    /* [row], another row of the same port, or IBP_NONE */
    int32_t *next_same;
    /* [port], its first row, or IBP_NONE */
    int32_t *row_of;
    /* [leaf][column], the sum of the bytes that a leaf's rows send; [leaf] where they send the same to all columns */
    uint64_t *sum;
    atomic_uint next_leaf;
    atomic_ullong next_column;
    atomic_int status;
    pthread_mutex_t merging;
    /* Signalled when all leaves are summed. */
    pthread_cond_t summed;
    uint32_t leaves_done;
    uint64_t *load, *ended;
    /* [row], bytes on its own link: first what it sends, then without what never arrives */
    uint64_t *sent;
    /* Every bit that is set in any value. */
    uint64_t any;
};

static inline uint64_t ibp_matrix_value(const struct ibp_matrix *matrix, uint64_t row, uint64_t column)
{
    return matrix->bytes[row * matrix->row_step + column * matrix->column_step];
}

/* Sum leaves as long as any are left, then wait until the other threads have summed theirs. */
void ibp_matrix_sum_leaves(struct ibp_matrix_spread *all);

/* Spread columns as long as any are left, once all leaves are summed. Sets `status` on an error. */
void ibp_matrix_spread_columns(struct ibp_matrix_spread *all);

#endif
