/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A kernel like FT of the NAS Parallel Benchmarks: Fourier transforms along the rows of a square matrix distributed over
 * the ranks by rows, and an all-to-all exchange that transposes it. Prints the seconds of the fastest of several rounds.
 *
 *     transform SIDE ROUNDS        SIDE is a power of two and a multiple of the ranks
 */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef double complex number;

static const double pi = 3.14159265358979323846;

static void transform_row(number *row, int side)
{
    for (int i = 1, j = 0; i < side; i++) {
        int bit = side >> 1;

        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) {
            const number kept = row[i];

            row[i] = row[j];
            row[j] = kept;
        }
    }
    for (int length = 2; length <= side; length *= 2) {
        const number step = cexp(-2 * pi * I / length);

        for (int first = 0; first < side; first += length) {
            number root = 1;

            for (int i = first; i < first + length / 2; i++, root *= step) {
                const number odd = row[i + length / 2] * root;

                row[i + length / 2] = row[i] - odd;
                row[i] += odd;
            }
        }
    }
}

/* Send each rank the block where this rank's rows cross that rank's columns; store the received blocks as rows. */
static void turn(number *rows, number *spare, int side, int mine)
{
    const int ranks = side / mine;

    for (int to = 0; to < ranks; to++)
        for (int column = 0; column < mine; column++)
            for (int row = 0; row < mine; row++)
                spare[(to * mine + column) * mine + row] = rows[row * side + to * mine + column];
    MPI_Alltoall(spare, mine * mine, MPI_C_DOUBLE_COMPLEX, rows, mine * mine, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    for (int i = 0; i < side * mine; i++) spare[i] = rows[i];
    for (int from = 0; from < ranks; from++)
        for (int row = 0; row < mine; row++)
            for (int column = 0; column < mine; column++)
                rows[row * side + from * mine + column] = spare[(from * mine + row) * mine + column];
}

int main(int argc, char **argv)
{
    int me, ranks, side, mine;
    double least = 1e30;
    number *rows, *spare;

    if (argc < 3) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    side = atoi(argv[1]);
    mine = side / ranks;
    rows = malloc(sizeof *rows * (size_t)(side * mine));
    spare = malloc(sizeof *spare * (size_t)(side * mine));
    for (int i = 0; i < side * mine; i++) rows[i] = (me + 1) * (i % 7);
    for (int round = 0; round < atoi(argv[2]); round++) {
        double seconds, norm = 0, total;

        MPI_Barrier(MPI_COMM_WORLD);
        seconds = MPI_Wtime();
        for (int turns = 0; turns < 2; turns++) {
            for (int row = 0; row < mine; row++) transform_row(rows + row * side, side);
            turn(rows, spare, side, mine);
        }
        for (int i = 0; i < side * mine; i++) norm += creal(rows[i] * conj(rows[i]));
        MPI_Allreduce(&norm, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < side * mine; i++) rows[i] /= sqrt(total / ((double)side * side));
        seconds = MPI_Wtime() - seconds;
        if (seconds < least) least = seconds;
    }
    if (!me) printf("%.6f\n", least);
    MPI_Finalize();
    return 0;
}
