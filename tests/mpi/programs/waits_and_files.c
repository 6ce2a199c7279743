/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * One wait of a given time among many quick calls of the same line, and files written and read together. Each rank prints
 * the seconds inside the calls by its own clock: lines of `RANK OPERATION LEAST MOST`. Two ranks.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define QUICK 200000
#define BLOCK (1 << 20)

static char bytes[BLOCK];

static double rare_wait(int rank, double late_s, double *sum)
{
    const struct timespec late = {(time_t)late_s, (long)((late_s - (double)(time_t)late_s) * 1e9)};
    double longest = 0;

    for (int i = 0; i < QUICK; i++) {
        MPI_Request requests[2];
        double begin;

        if (rank == 0 && i == QUICK / 2) nanosleep(&late, NULL);
        MPI_Irecv(bytes, 1, MPI_CHAR, i == QUICK / 2 ? !rank : rank, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(bytes + 8, 1, MPI_CHAR, i == QUICK / 2 ? !rank : rank, 0, MPI_COMM_WORLD, &requests[1]);
        begin = MPI_Wtime();
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        begin = MPI_Wtime() - begin;
        *sum += begin;
        if (begin > longest) longest = begin;
    }
    return longest;
}

static double write_together(int rank, const char *path)
{
    MPI_Datatype every_other;
    MPI_File file;
    double begin;

    MPI_Type_vector(BLOCK / 4096, 4096, 8192, MPI_CHAR, &every_other);
    MPI_Type_commit(&every_other);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 4096 * rank, MPI_CHAR, every_other, "native", MPI_INFO_NULL);
    begin = MPI_Wtime();
    for (int i = 0; i < 8; i++) MPI_File_write_at_all(file, 0, bytes, BLOCK, MPI_CHAR, MPI_STATUS_IGNORE);
    begin = MPI_Wtime() - begin;
    MPI_File_close(&file);
    MPI_Type_free(&every_other);
    return begin;
}

int main(int argc, char **argv)
{
    double longest, sum = 0;
    int rank;

    if (argc < 3) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    longest = rare_wait(rank, atof(argv[1]), &sum);
    printf("%d WAITALL %.6f %.6f\n", rank, longest, sum);
    sum = write_together(rank, argv[2]);
    printf("%d FILE_WRITE_AT_ALL %.6f %.6f\n", rank, sum, sum);
    MPI_Finalize();
    return 0;
}
