/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ibprof_kernels/topology.h"

#define LANES 8

/* Return the minimum of row[i] - mean[i] for all i below `count`. Set `where` to the first i with the minimum. */
static double find_least(const double *row, const double *mean, uint32_t count, uint32_t *where)
{
    double lane[LANES];
    uint32_t i = 0;
    for (uint32_t l = 0; l < LANES; l++) lane[l] = INFINITY;
    for (; i + LANES <= count; i += LANES) {
        for (uint32_t l = 0; l < LANES; l++) {
            double value = row[i + l] - mean[i + l];
            lane[l] = value < lane[l] ? value : lane[l];
        }
    }
    double least = INFINITY;
    for (uint32_t l = 0; l < LANES; l++) least = lane[l] < least ? lane[l] : least;
    for (; i < count; i++) least = row[i] - mean[i] < least ? row[i] - mean[i] : least;
    for (*where = 0; *where + 1 < count && row[*where] - mean[*where] > least;) ++*where;
    return least;
}

/* Source: Saitou, Nei, "The neighbor-joining method", Molecular Biology and Evolution 4(4), 1987, in the form of
 * Studier, Keppler, "A note on the neighbor-joining algorithm of Saitou and Nei", Molecular Biology and Evolution 5(6),
 * 1988. */
int ibp_join_neighbours(double *distance, uint32_t leaves, int32_t *child)
{
    if (leaves < 2) return 0;
    double *sum = calloc(leaves, sizeof *sum), *mean = malloc(leaves * sizeof *mean);
    int32_t *node = malloc(leaves * sizeof *node);
    int status = -ENOMEM;
    if (!sum || !mean || !node) goto out;
    for (uint32_t i = 0; i < leaves; i++) {
        node[i] = (int32_t)i;
        for (uint32_t j = 0; j < leaves; j++) sum[i] += distance[(size_t)i * leaves + j];
    }
    status = 0;
    uint32_t made = 0;
    for (uint32_t count = leaves; count > 2; count--) {
        uint32_t a = 1, b = 0;
        double least = INFINITY;
        for (uint32_t i = 0; i < count; i++) mean[i] = sum[i] / (count - 2);
        for (uint32_t i = 1; i < count; i++) {
            uint32_t where;
            double value = find_least(distance + (size_t)i * leaves, mean, i, &where) - mean[i];
            if (value < least) {
                least = value;
                a = i;
                b = where;
            }
        }
        child[2 * made] = node[a];
        child[2 * made + 1] = node[b];
        double *row_a = distance + (size_t)a * leaves, *row_b = distance + (size_t)b * leaves;
        double between = row_a[b];
        sum[b] = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (i == a || i == b) continue;
            double joined = (row_a[i] + row_b[i] - between) / 2;
            sum[i] += joined - row_a[i] - row_b[i];
            sum[b] += joined;
            row_b[i] = distance[(size_t)i * leaves + b] = joined;
        }
        node[b] = (int32_t)(leaves + made++);
        /* Move the last slot's row and column to the slot that became free. */
        uint32_t last = count - 1;
        if (a != last) {
            const double *row_last = distance + (size_t)last * leaves;
            for (uint32_t i = 0; i < last; i++) row_a[i] = distance[(size_t)i * leaves + a] = row_last[i];
            row_a[a] = 0;
            sum[a] = sum[last];
            node[a] = node[last];
        }
    }
    child[2 * made] = node[0];
    child[2 * made + 1] = node[1];
out:
    free(sum);
    free(mean);
    free(node);
    return status;
}
