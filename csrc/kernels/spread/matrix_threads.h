/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The work of the threads that sum a matrix over its routes.
 *
 * The matrix is read only once, row by row (source by source), because sequential reads are fastest. While the matrix
 * is read, the rows of each leaf switch are summed. Then the sums of leaves are added along the in-tree of each
 * destination. This needs one read of each element and (leaves + used spines) x destinations additions, instead of
 * pairs x hops additions.
 */
#ifndef IBP_SPREAD_MATRIX_THREADS_H
#define IBP_SPREAD_MATRIX_THREADS_H

#include "ibprof_kernels/spread.h"
#include "routes/step.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The state of one call of ibp_spread_matrix. All threads of the call share this state. */
struct ibp_matrix_spread {
    const struct ibp_routes *routes;
    const struct ibp_trees *trees;
    const struct ibp_matrix *matrix;
    /* Rows sorted by leaf switch; rows without a leaf switch are last. */
    uint32_t *of_leaf;
    /* [leaves + 1], index in `of_leaf` of the first row of each leaf */
    uint64_t *begin;
    /* [row], the next row with the same port, or IBP_NONE */
    int32_t *next_same;
    /* [port], the first row of the port, or IBP_NONE */
    int32_t *row_of;
    /* [leaf][column], the sum over the rows of a leaf; only [leaf] if each row sends the same bytes to all columns */
    uint64_t *sum;
    atomic_uint next_leaf;
    atomic_ullong next_column;
    atomic_int status;
    pthread_mutex_t merging;
    pthread_cond_t summed;
    uint32_t leaves_done;
    uint64_t *load, *ended;
    /* [row], bytes on the row's first link. Initially all bytes of the row; bytes that do not arrive are subtracted
     * later */
    uint64_t *sent;
    /* Bitwise OR of all values. */
    uint64_t any;
};

static inline uint64_t ibp_matrix_value(const struct ibp_matrix *matrix, uint64_t row, uint64_t column)
{
    return matrix->bytes[row * matrix->row_step + column * matrix->column_step];
}

/* Sum the rows of leaves until no leaf is left, then wait until all threads have finished their leaves. */
void ibp_matrix_sum_leaves(struct ibp_matrix_spread *all);

/* Sum columns over their routes, until no column is left. All leaves must be summed before this call. Set `status` if
 * an error occurs. */
void ibp_matrix_spread_columns(struct ibp_matrix_spread *all);

#endif
