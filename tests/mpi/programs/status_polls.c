/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls of MPI 4.1 that wait for rank 0, which is late. Rank 1 asks for the status of several requests until these are
 * complete, and flushes buffered messages. Rank 1 prints OPERATION CALLS SECONDS, by its own clock.
 *
 *     status_polls ROUNDS LATE_S
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define REQUESTS 3
#define POLLS 50 /* between two readings of the clock */
#define BYTES (4 << 20)

static double seconds;
static long calls;

static void show(const char *operation)
{
    printf("%s %ld %.9f\n", operation, calls, seconds);
    seconds = 0;
    calls = 0;
}

static void poll(MPI_Request *requests, int kind)
{
    MPI_Status statuses[REQUESTS];
    int places[REQUESTS], place, found = 0;

    while (!found) {
        const double begin = MPI_Wtime();

        for (int each = 0; each < POLLS; each++, calls++)
            if (kind == 0)
                MPI_Request_get_status_all(REQUESTS, requests, &found, statuses);
            else if (kind == 1)
                MPI_Request_get_status_any(REQUESTS, requests, &place, &found, statuses);
            else
                MPI_Request_get_status_some(REQUESTS, requests, &found, places, statuses);
        seconds += MPI_Wtime() - begin;
    }
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    const useconds_t late_us = (useconds_t)((argc > 2 ? atof(argv[2]) : 0) * 1e6);
    static const char *const kinds[] = {"REQUEST_GET_STATUS_ALL", "REQUEST_GET_STATUS_ANY", "REQUEST_GET_STATUS_SOME"};
    static char bytes[BYTES], buffer[2][BYTES + MPI_BSEND_OVERHEAD];
    MPI_Request requests[REQUESTS];
    int me;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (int kind = 0; kind < 3; kind++) {
        for (int round = 0; round < rounds; round++) {
            if (!me) usleep(late_us);
            for (int each = 0; each < REQUESTS; each++)
                if (me)
                    MPI_Irecv(bytes + each, 1, MPI_BYTE, 0, each, MPI_COMM_WORLD, requests + each);
                else
                    MPI_Isend(bytes + each, 1, MPI_BYTE, 1, each, MPI_COMM_WORLD, requests + each);
            if (me) poll(requests, kind);
            MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (me) show(kinds[kind]);
    }
    if (me) MPI_Comm_attach_buffer(MPI_COMM_WORLD, buffer[0], sizeof buffer[0]);
    if (me) MPI_Buffer_attach(buffer[1], sizeof buffer[1]);
    for (int kind = 0; kind < 2; kind++) {
        static const char *const names[] = {"COMM_FLUSH_BUFFER", "BUFFER_FLUSH"};
        MPI_Comm comm;

        if (kind)
            MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* a communicator without a separate buffer */
        else
            comm = MPI_COMM_WORLD;
        for (int round = 0; round < rounds; round++) {
            if (me) {
                MPI_Bsend(bytes, BYTES, MPI_BYTE, 0, 0, comm);
                const double begin = MPI_Wtime();

                if (kind)
                    MPI_Buffer_flush();
                else
                    MPI_Comm_flush_buffer(MPI_COMM_WORLD);
                seconds += MPI_Wtime() - begin;
                calls++;
            } else {
                usleep(late_us);
                MPI_Recv(bytes, BYTES, MPI_BYTE, 1, 0, comm, MPI_STATUS_IGNORE);
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (me) show(names[kind]);
        if (kind) MPI_Comm_free(&comm);
    }
    if (me) {
        void *own;
        int size;

        MPI_Comm_detach_buffer(MPI_COMM_WORLD, &own, &size);
        MPI_Buffer_detach(&own, &size);
    }
    MPI_Finalize();
    return 0;
}
