/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Each rank sends to itself: many quick messages, and a large message of one item of a derived datatype. MPI copies the
 * large message inside calls that do not wait. Prints the seconds inside calls: RANK OPERATION LARGE_ONE ALL.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUICK 30000
#define LARGE 25000
#define BYTES (64 << 20)

enum { RECV, IRECV, MRECV, ISEND, START, PUT, GET, ACCUMULATE, OPERATIONS };

static const char *const names[OPERATIONS] = {"RECV", "IRECV", "MRECV", "ISEND", "START", "PUT", "GET", "ACCUMULATE"};
static double large_s[OPERATIONS], all_s[OPERATIONS];

#define TIMED(operation, call)                                                                                         \
    do {                                                                                                               \
        double begin_ = MPI_Wtime();                                                                                   \
                                                                                                                       \
        call;                                                                                                          \
        begin_ = MPI_Wtime() - begin_;                                                                                 \
        all_s[operation] += begin_;                                                                                    \
        if (is_large) large_s[operation] += begin_;                                                                    \
    } while (0)

static char *from, *into;
static int rank;

/* One function for small and large messages, so that they have the same call sites. */
static __attribute__((noipa)) void messages(int is_large, MPI_Datatype type)
{
    const MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request requests[2];
    MPI_Message message;

    MPI_Isend(from, 1, type, rank, 0, world, requests);
    TIMED(RECV, MPI_Recv(into, 1, type, rank, 0, world, MPI_STATUS_IGNORE));
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_Isend(from, 1, type, rank, 0, world, requests);
    TIMED(IRECV, MPI_Irecv(into, 1, type, rank, 0, world, requests + 1));
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Isend(from, 1, type, rank, 0, world, requests);
    MPI_Mprobe(rank, 0, world, &message, MPI_STATUS_IGNORE);
    TIMED(MRECV, MPI_Mrecv(into, 1, type, &message, MPI_STATUS_IGNORE));
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_Irecv(into, 1, type, rank, 0, world, requests);
    TIMED(ISEND, MPI_Isend(from, 1, type, rank, 0, world, requests + 1));
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static __attribute__((noipa)) void start(int is_large, MPI_Request *request, MPI_Datatype type)
{
    MPI_Request receive;

    MPI_Irecv(into, 1, type, rank, 0, MPI_COMM_WORLD, &receive);
    TIMED(START, MPI_Start(request));
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static __attribute__((noipa)) void windows(int is_large, MPI_Datatype type, MPI_Win window)
{
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    TIMED(PUT, MPI_Put(from, 1, type, 0, 0, 1, type, window));
    TIMED(GET, MPI_Get(into, 1, type, 0, 0, 1, type, window));
    TIMED(ACCUMULATE, MPI_Accumulate(from, 1, type, 0, 0, 1, type, MPI_REPLACE, window));
    MPI_Win_unlock(0, window);
}

int main(int argc, char **argv)
{
    MPI_Request persistent[2];
    MPI_Datatype large;
    MPI_Win window;
    void *memory;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    from = malloc(BYTES);
    into = malloc(BYTES);
    memset(from, 1, BYTES);
    memset(into, 1, BYTES);
    MPI_Type_contiguous(BYTES, MPI_CHAR, &large);
    MPI_Type_commit(&large);
    MPI_Send_init(from, 1, MPI_CHAR, rank, 0, MPI_COMM_WORLD, &persistent[0]);
    MPI_Send_init(from, 1, large, rank, 0, MPI_COMM_WORLD, &persistent[1]);
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window);
    memset(memory, 1, BYTES);
    for (int i = 1; i <= QUICK; i++) {
        const int is_large = i == LARGE;
        MPI_Datatype type = is_large ? large : MPI_CHAR;

        messages(is_large, type);
        start(is_large, &persistent[is_large], type);
        windows(is_large, type, window);
    }
    for (int i = 0; i < OPERATIONS; i++) printf("%d %s %.6f %.6f\n", rank, names[i], large_s[i], all_s[i]);
    MPI_Win_free(&window);
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
    MPI_Type_free(&large);
    MPI_Finalize();
    free(from);
    free(into);
    return 0;
}
