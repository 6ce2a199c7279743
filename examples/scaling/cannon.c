/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The product of two N x N matrices by Cannon's algorithm on a square grid of ranks. Each rank generates its first
 * blocks, so that only the sqrt(p) - 1 shifts send:
 *
 *     mpirun -n P ./cannon N
 *
 * Sends 2 N^2 (sqrt(p) - 1) 8 bytes.
 */
#include <ibprof.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int n, side, block;

/* The matrices that are multiplied: A(i, k) = i + k, B(k, j) = k - j. */
static void fill(double *of, int block_row, int block_column, int sign)
{
    for (int i = 0; i < block; i++)
        for (int j = 0; j < block; j++)
            of[i * block + j] = (double)(block_row * block + i) + sign * (double)(block_column * block + j);
}

static void multiply_add(const double *a, const double *b, double *c)
{
    for (int i = 0; i < block; i++)
        for (int k = 0; k < block; k++)
            for (int j = 0; j < block; j++) c[i * block + j] += a[i * block + k] * b[k * block + j];
}

/* The sum over k of (i + k) (k - j), in closed form. */
static double expected(double i, double j)
{
    const double m = n, sum = m * (m - 1) / 2, squares = (m - 1) * m * (2 * m - 1) / 6;

    return squares + (i - j) * sum - i * j * m;
}

static int is_right(const double *c, int row, int column)
{
    for (int i = 0; i < block; i++)
        for (int j = 0; j < block; j++)
            if (c[i * block + j] != expected(row * block + i, column * block + j)) return 0;
    return 1;
}

int main(int argc, char **argv)
{
    int ranks, rank, here[2], left, right, up, down, dims[2], wraps[2] = {1, 1};
    double *a, *b, *c;
    MPI_Comm grid;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    n = argc > 1 ? atoi(argv[1]) : 120;
    while ((side + 1) * (side + 1) <= ranks) side++;
    if (side * side != ranks || n < side || n % side) {
        fprintf(stderr, "expected a square number of ranks, and N a multiple of its square root\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    block = n / side;
    dims[0] = dims[1] = side;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, wraps, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, here);
    MPI_Cart_shift(grid, 1, -1, &right, &left);
    MPI_Cart_shift(grid, 0, -1, &down, &up);
    a = malloc((size_t)block * block * sizeof *a);
    b = malloc((size_t)block * block * sizeof *b);
    c = calloc((size_t)block * block, sizeof *c);
    if (!a || !b || !c) MPI_Abort(MPI_COMM_WORLD, 1);
    fill(a, here[0], (here[1] + here[0]) % side, 1);
    fill(b, (here[0] + here[1]) % side, here[1], -1);
    for (int step = 0;; step++) {
        ibprof_region_begin("multiply");
        multiply_add(a, b, c);
        ibprof_region_end();
        if (step == side - 1) break;
        ibprof_region_begin("shift");
        MPI_Sendrecv_replace(a, block * block, MPI_DOUBLE, left, 0, right, 0, grid, MPI_STATUS_IGNORE);
        MPI_Sendrecv_replace(b, block * block, MPI_DOUBLE, up, 1, down, 1, grid, MPI_STATUS_IGNORE);
        ibprof_region_end();
    }
    if (!is_right(c, here[0], here[1])) {
        fprintf(stderr, "the product is wrong\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
