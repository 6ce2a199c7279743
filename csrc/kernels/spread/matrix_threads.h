/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The work of the threads that spread a matrix.
 *
 * A matrix is read once, row by row (source by source), because sequential reads are fastest. The rows of each leaf
 * switch are summed at the same time. The sums of the leaves then flow down the in-tree of each destination. The cost
 * is one read of the matrix plus (leaves + used spines) x destinations, instead of pairs x hops.
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
    /* Rows sorted by their leaf switch; then rows without a leaf switch. */
    uint32_t *of_leaf;
    /* [leaves + 1], index of a leaf's first row in of_leaf */
    uint64_t *begin;
    /* [row], another row of the same port, or IBP_NONE */
    int32_t *next_same;
    /* [port], the first row of the port, or IBP_NONE */
    int32_t *row_of;
    /* [leaf][column], the sum over a leaf's rows; [leaf] where each row sends the same to all columns */
    uint64_t *sum;
    atomic_uint next_leaf;
    atomic_ullong next_column;
    atomic_int status;
    pthread_mutex_t merging;
    /* Signalled when all leaves are summed. */
    pthread_cond_t summed;
    uint32_t leaves_done;
    uint64_t *load, *ended;
    /* [row], bytes on the row's first link: first all sent bytes, then without bytes that never arrive */
    uint64_t *sent;
    /* All bits that occur in the values. */
    uint64_t any;
};

static inline uint64_t ibp_matrix_value(const struct ibp_matrix *matrix, uint64_t row, uint64_t column)
{
    return matrix->bytes[row * matrix->row_step + column * matrix->column_step];
}

/* Sum leaves while any are left, then wait until the other threads have finished their leaves. */
void ibp_matrix_sum_leaves(struct ibp_matrix_spread *all);

/* Spread columns while any are left, once all leaves are summed. Sets `status` on an error. */
void ibp_matrix_spread_columns(struct ibp_matrix_spread *all);

#endif
