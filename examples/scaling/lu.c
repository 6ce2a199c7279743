/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * LU factorisation of an N x N matrix that needs no pivoting, its elements distributed cyclically over a square grid of
 * ranks. In each step the pivot goes down its column of ranks. Then the multipliers go along the rows, and the pivot's
 * row goes down the columns.
 *
 *     mpirun -n P ./lu N
 *
 * Sends (sqrt(p) - 1) (N^2 - 1) 8 bytes in broadcasts by trees.
 */
#include <ibprof.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int n, side, here[2], mine[2];
static double *a, *multipliers, *pivot_row;

/* The matrix, diagonally dominant. */
static double element(int i, int j)
{
    return i == j ? 2.0 * n : 1.0 / (1.0 + abs(i - j));
}

/* The number of indices up to `last` that belong to the grid's line `line`. */
static int held_until(int line, int last)
{
    return last < line ? 0 : (last - line) / side + 1;
}

static void step(int k, MPI_Comm row, MPI_Comm column)
{
    const int owner_row = k % side, owner_column = k % side;
    const int first_i = held_until(here[0], k), first_j = held_until(here[1], k);
    double pivot = 0;

    if (here[1] == owner_column) {
        if (here[0] == owner_row) pivot = a[(k / side) * mine[1] + k / side];
        MPI_Bcast(&pivot, 1, MPI_DOUBLE, owner_row, column);
        for (int i = first_i; i < mine[0]; i++) multipliers[i] = a[i * mine[1] + k / side] /= pivot;
    }
    MPI_Bcast(multipliers + first_i, mine[0] - first_i, MPI_DOUBLE, owner_column, row);
    if (here[0] == owner_row)
        for (int j = first_j; j < mine[1]; j++) pivot_row[j] = a[(k / side) * mine[1] + j];
    MPI_Bcast(pivot_row + first_j, mine[1] - first_j, MPI_DOUBLE, owner_row, column);
    for (int i = first_i; i < mine[0]; i++)
        for (int j = first_j; j < mine[1]; j++) a[i * mine[1] + j] -= multipliers[i] * pivot_row[j];
}

/* Returns this rank's part of the determinant's logarithm; all parts add up to log_determinant_alone(). */
static double log_determinant_here(void)
{
    double sum = 0;

    for (int k = 0; k < n; k++)
        if (k % side == here[0] && k % side == here[1]) sum += log(a[(k / side) * mine[1] + k / side]);
    return sum;
}

static double log_determinant_alone(void)
{
    double *whole = malloc((size_t)n * n * sizeof *whole), sum = 0;

    if (!whole) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < n * n; i++) whole[i] = element(i / n, i % n);
    for (int k = 0; k < n; k++) {
        sum += log(whole[k * n + k]);
        for (int i = k + 1; i < n; i++) {
            const double multiplier = whole[i * n + k] / whole[k * n + k];

            for (int j = k + 1; j < n; j++) whole[i * n + j] -= multiplier * whole[k * n + j];
        }
    }
    free(whole);
    return sum;
}

int main(int argc, char **argv)
{
    double part, sum;
    int ranks, rank;
    MPI_Comm row, column;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    n = argc > 1 ? atoi(argv[1]) : 96;
    while ((side + 1) * (side + 1) <= ranks) side++;
    if (side * side != ranks || n < side) {
        fprintf(stderr, "expected a square number of ranks, and N of at least its square root\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    here[0] = rank / side;
    here[1] = rank % side;
    MPI_Comm_split(MPI_COMM_WORLD, here[0], here[1], &row);
    MPI_Comm_split(MPI_COMM_WORLD, here[1], here[0], &column);
    for (int axis = 0; axis < 2; axis++) mine[axis] = held_until(here[axis], n - 1);
    a = malloc((size_t)mine[0] * mine[1] * sizeof *a);
    multipliers = calloc((size_t)mine[0] + 1, sizeof *multipliers);
    pivot_row = calloc((size_t)mine[1] + 1, sizeof *pivot_row);
    if (!a || !multipliers || !pivot_row) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < mine[0]; i++)
        for (int j = 0; j < mine[1]; j++) a[i * mine[1] + j] = element(i * side + here[0], j * side + here[1]);
    ibprof_region_begin("factorise");
    for (int k = 0; k < n - 1; k++) step(k, row, column);
    ibprof_region_end();
    part = log_determinant_here();
    MPI_Reduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && fabs(sum - log_determinant_alone()) > 1e-9 * fabs(sum)) {
        fprintf(stderr, "the determinant is wrong\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
