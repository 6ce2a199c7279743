/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * One thread posts receives. Another thread starts at the same moment and completes the receives within its sends. Its
 * start varies, so the steps of both threads interleave in every order. Every second receive is persistent.
 *
 *     racing_receives MESSAGES
 */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define BYTES 8

static int messages;
static atomic_int posting, sent;

static void await(atomic_int *number, int least)
{
    for (int looked = 1; atomic_load(number) < least; looked++)
        if (looked % 4096 == 0) sched_yield();
}

static void *send_all(void *unused)
{
    const char from[BYTES] = "";
    unsigned random = 1;

    for (int i = 1; i <= messages; i++) {
        await(&posting, i);
        random = random * 1103515245u + 12345;
        for (volatile unsigned turns = (random >> 16) % 150; turns > 0; turns--) continue;
        MPI_Send(from, BYTES, MPI_BYTE, 0, i % 2, MPI_COMM_WORLD);
        atomic_store(&sent, i);
    }
    return unused;
}

int main(int argc, char **argv)
{
    MPI_Request request, persistent;
    pthread_t sender;
    char into[BYTES];
    int provided;

    if (argc < 2) return 2;
    messages = atoi(argv[1]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) return 77;
    MPI_Recv_init(into, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &persistent);
    if (pthread_create(&sender, NULL, send_all, NULL)) abort();
    for (int i = 1; i <= messages; i++) {
        atomic_store(&posting, i);
        if (i % 2)
            MPI_Irecv(into, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
        else
            MPI_Start(&persistent);
        await(&sent, i);
        MPI_Wait(i % 2 ? &request : &persistent, MPI_STATUS_IGNORE);
    }
    pthread_join(sender, NULL);
    MPI_Request_free(&persistent);
    MPI_Finalize();
    return 0;
}
