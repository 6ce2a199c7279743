/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Nonblocking collectives whose messages are sent inside other calls.
 *
 *     overlap barrier|wait|three|hundreds
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (1 << 20)
#define BLOCK (32 << 10)
#define IN_FLIGHT 300

static char *from, *into;

static void cross_a_barrier(void)
{
    MPI_Request request;

    MPI_Ibcast(from, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void end_in_a_wait(int me)
{
    MPI_Request request;

    MPI_Ialltoall(from, BLOCK, MPI_BYTE, into, BLOCK, MPI_BYTE, MPI_COMM_WORLD, &request);
    if (me == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    else
        for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

/* A broadcast and an all-gather on one communicator, then an all-to-all on another communicator. They are completed in
 * another order, with a blocking broadcast in between. */
static void three_on_two(void)
{
    MPI_Request requests[3];
    MPI_Comm other;

    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Ibcast(from, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Ialltoall(from, BLOCK, MPI_BYTE, into, BLOCK, MPI_BYTE, other, &requests[1]);
    MPI_Iallgather(from, BLOCK + 1, MPI_BYTE, into + BYTES, BLOCK + 1, MPI_BYTE, MPI_COMM_WORLD, &requests[2]);
    MPI_Bcast(into + 2 * BYTES, BYTES - 5, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&other);
}

static void hundreds_at_once(int me, int ranks)
{
    MPI_Request requests[2 * IN_FLIGHT];
    const int next = (me + 1) % ranks;

    for (int i = 0; i < IN_FLIGHT; i++) {
        if (i % 2)
            MPI_Ibcast(from, i + 1, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[2 * i]);
        else
            MPI_Iallgather(from, i + 1, MPI_BYTE, into, i + 1, MPI_BYTE, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(from, 3, MPI_BYTE, next, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        MPI_Recv(into + BYTES, 3, MPI_BYTE, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2 * IN_FLIGHT, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "barrier";
    int me, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc(4, BYTES);
    into = calloc(4, BYTES);
    if (!strcmp(what, "barrier"))
        cross_a_barrier();
    else if (!strcmp(what, "wait"))
        end_in_a_wait(me);
    else if (!strcmp(what, "three"))
        three_on_two();
    else
        hundreds_at_once(me, ranks);
    MPI_Finalize();
    return 0;
}
