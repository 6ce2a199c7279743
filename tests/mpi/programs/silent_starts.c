/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls whose first message is sent in another call, or that send no messages.
 *
 *     silent_starts local|empty|duplicate|thousands|persistent|partitioned
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Reduce_init MPIX_Reduce_init
#endif

#define ITEMS 30000
#define ROUNDS 20
#define THOUSANDS 3000

static int *from, *into, ranks;

/* On some ranks, a reduction starts with a copy. Its messages are sent inside a call on another communicator. */
static void start_with_a_local_step(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        MPI_Comm fresh;

        MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
        MPI_Ireduce(from, into, ITEMS, MPI_INT, MPI_SUM, 1, fresh, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&fresh);
    }
}

/* A reduction of nothing allocates no tag. The later duplication allocates a tag. The all-to-all in place does not send
 * at once either. */
static void start_with_nothing(void)
{
    MPI_Comm fresh, another;
    MPI_Request request;

    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    MPI_Ibcast(from, 1, MPI_INT, 0, fresh, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ireduce(from, into, 0, MPI_INT, MPI_SUM, 0, fresh, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_dup(fresh, &another);
    MPI_Comm_free(&another);
    MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_INT, into, 10, MPI_INT, fresh, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&fresh);
}

static void duplicate(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        MPI_Comm fresh;

        MPI_Comm_idup(MPI_COMM_WORLD, &fresh, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&fresh);
    }
}

static void keep_thousands_in_flight(void)
{
    static MPI_Request request[2 * THOUSANDS];
    static int sums[THOUSANDS];

    for (int i = 0; i < THOUSANDS; i++) MPI_Ibcast(from, 1, MPI_INT, 0, MPI_COMM_WORLD, request + i);
    for (int i = 0; i < THOUSANDS; i++)
        MPI_Iallreduce(from, sums + i, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request + THOUSANDS + i);
    MPI_Waitall(2 * THOUSANDS, request, MPI_STATUSES_IGNORE);
}

static void start_again(void)
{
    MPI_Request request;

    MPI_Reduce_init(from, into, ITEMS, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

static void send_in_partitions(int me)
{
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    MPI_Request request;

    if (me == 0) MPI_Psend_init(from, 4, ITEMS / 4, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (me == 1) MPI_Precv_init(into, 4, ITEMS / 4, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS && me < 2; round++) {
        MPI_Start(&request);
        for (int part = 0; part < 4 && me == 0; part++) MPI_Pready(part, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (me < 2) MPI_Request_free(&request);
#else
    (void)me;
#endif
}

int main(int arguments, char **argument)
{
    const char *what = arguments > 1 ? argument[1] : "";
    int me;

    MPI_Init(&arguments, &argument);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc(ITEMS, sizeof *from);
    into = calloc(ITEMS * (size_t)ranks, sizeof *into);
    if (!strcmp(what, "local")) start_with_a_local_step();
    if (!strcmp(what, "empty")) start_with_nothing();
    if (!strcmp(what, "duplicate")) duplicate();
    if (!strcmp(what, "thousands")) keep_thousands_in_flight();
    if (!strcmp(what, "persistent")) start_again();
    if (!strcmp(what, "partitioned")) send_in_partitions(me);
    free(from);
    free(into);
    MPI_Finalize();
    return 0;
}
