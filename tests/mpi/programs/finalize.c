/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * finalize BYTES: MPI_COMM_SELF has two attributes. When MPI_Finalize deletes an attribute, its callback sends BYTES to
 * the next rank. The attribute that was set last is deleted first.
 */
#include <mpi.h>
#include <stdlib.h>

static int send_to_next(MPI_Comm comm, int key, void *value, void *state)
{
    char *buffer = calloc(2, *(int *)value);
    int rank, size;

    (void)comm, (void)key, (void)state;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(buffer, *(int *)value, MPI_CHAR, (rank + 1) % size, 7, buffer + *(int *)value, *(int *)value, MPI_CHAR,
                 (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(buffer);
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    static int bytes;

    if (argc < 2) return 2;
    bytes = atoi(argv[1]);
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 2; i++) {
        int key;

        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, send_to_next, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, &bytes);
    }
    return MPI_Finalize();
}
