/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls between all ranks, one kind and one size after the other. For each call and size,
 * rank 0 prints a line: the call, the bytes, and the microseconds of one call in the fastest of several batches. Other load
 * on the machine disturbs the fastest batch least.
 *
 *     calls BATCHES CALL,CALL,... BYTES,BYTES,... [CALLS_A_BATCH]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES (4 << 20)
#define CALLS_MAX 1000
#define CALLS_MIN 2
#define WINDOW 16

static char *from, *into;
static int me, ranks;

static void ping_pong(int bytes)
{
    if (me > 1) return;
    if (me) MPI_Recv(into, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(from, bytes, MPI_BYTE, !me, 0, MPI_COMM_WORLD);
    if (!me) MPI_Recv(into, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Send several messages to the next rank, and receive several messages from the previous rank, at the same time. */
static void window(int bytes)
{
    MPI_Request requests[2 * WINDOW];

    for (int i = 0; i < WINDOW; i++)
        MPI_Irecv(into, bytes, MPI_BYTE, (me + ranks - 1) % ranks, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < WINDOW; i++)
        MPI_Isend(from, bytes, MPI_BYTE, (me + 1) % ranks, i, MPI_COMM_WORLD, &requests[WINDOW + i]);
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
}

static void barrier(int bytes)
{
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(int bytes)
{
    MPI_Bcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void gather(int bytes)
{
    MPI_Gather(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatter(int bytes)
{
    MPI_Scatter(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allgather(int bytes)
{
    MPI_Allgather(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int bytes)
{
    MPI_Alltoall(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void reduce(int bytes)
{
    MPI_Reduce(from, into, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(int bytes)
{
    MPI_Allreduce(from, into, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*call)(int);
} kinds[] = {
    {"PingPong", ping_pong}, {"Window", window},       {"Barrier", barrier},     {"Bcast", bcast},
    {"Gather", gather},      {"Scatter", scatter},     {"Allgather", allgather}, {"Alltoall", alltoall},
    {"Reduce", reduce},      {"Allreduce", allreduce},
};

static double time_batch(void (*call)(int), int bytes, int calls)
{
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < calls; i++) call(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - start) / calls * 1e6;
}

static void time_kind(const char *name, int bytes, int batches, int calls)
{
    static int measured;
    double least = 1e30;

    if (!calls) calls = BATCH_BYTES / (bytes ? bytes : 1);
    calls = calls > CALLS_MAX ? CALLS_MAX : calls < CALLS_MIN ? CALLS_MIN : calls;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        if (strcmp(kinds[kind].name, name)) continue;
        if (kinds[kind].call == barrier && measured++) return; /* no bytes to vary */
        for (int batch = -1; batch < batches; batch++) {
            const double us = time_batch(kinds[kind].call, bytes, calls);

            if (batch >= 0 && us < least) least = us;
        }
    }
    if (!me) printf("%s %d %.4f\n", name, bytes, least);
}

int main(int argc, char **argv)
{
    int batches, calls, largest = 0;
    char *names, *sizes;

    if (argc < 4) return 2;
    batches = atoi(argv[1]);
    calls = argc > 4 ? atoi(argv[4]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (const char *size = argv[3]; size; size = strchr(size, ',') ? strchr(size, ',') + 1 : NULL)
        if (atoi(size) > largest) largest = atoi(size);
    from = calloc((size_t)ranks, (size_t)largest);
    into = calloc((size_t)ranks, (size_t)largest);
    names = argv[2];
    for (char *name = strsep(&names, ","); name; name = strsep(&names, ",")) {
        char *list = sizes = strdup(argv[3]);

        for (char *size = strsep(&list, ","); size; size = strsep(&list, ","))
            time_kind(name, atoi(size), batches, calls);
        free(sizes);
    }
    MPI_Finalize();
    return 0;
}
