/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * While a receive with wildcards is pending, rank 1 receives a partitioned message, then messages with the same tag.
 *
 *     partitions_and_wildcards MESSAGES
 */
#include <mpi.h>
#include <stdlib.h>

enum { TAG = 7, LAST_TAG = 9 };

int main(int argc, char **argv)
{
    const int messages = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Request partitioned, any;
    int me, sent = 0, received = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me) {
        MPI_Irecv(&received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
        MPI_Precv_init(&sent, 1, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &partitioned);
        MPI_Start(&partitioned);
    } else {
        MPI_Psend_init(&sent, 1, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &partitioned);
        MPI_Start(&partitioned);
        MPI_Pready(0, partitioned);
    }
    MPI_Wait(&partitioned, MPI_STATUS_IGNORE);
    MPI_Request_free(&partitioned);
    if (me)
        MPI_Wait(&any, MPI_STATUS_IGNORE);
    else
        MPI_Send(&sent, 1, MPI_INT, 1, LAST_TAG, MPI_COMM_WORLD);
    for (int i = 0; i < messages; i++) {
        if (me)
            MPI_Recv(&received, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(&sent, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
