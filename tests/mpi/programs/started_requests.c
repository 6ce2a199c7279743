/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Persistent requests as programs start them: many at once, with requests to MPI_PROC_NULL and collectives among them.
 * Some requests are freed while active. Buffered sends start again before the first message has left, so Open MPI
 * replaces their requests. A freed request must not refer to ibprof, nor any request after the recording has ended.
 *
 *     started_requests [threads]
 */
#define _GNU_SOURCE
#include "tally.h"

#include <dlfcn.h>
#include <mpi.h>
#include <string.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Bcast_init MPIX_Bcast_init
#endif

#define MANY 150
#define ROUNDS 10
#define LARGE (1 << 20)
#define REQUEST_BYTES 256

static int me, ranks, to, source;
static char *from, *into;
static MPI_Request kept[2], left[2];

/* End the program if a request of Open MPI, freed or not, has an address in libibprof.so. Only the bytes that all kinds
 * of requests have are read. */
static void check_unhooked(void *const *request, const char *when)
{
    Dl_info where;

    for (size_t i = 0; i < REQUEST_BYTES / sizeof *request; i++)
        if (dladdr(request[i], &where) && where.dli_fname && strstr(where.dli_fname, "libibprof")) {
            printf("rank %d: word %zu of a request refers to ibprof %s\n", me, i, when);
            abort();
        }
}

static void free_request(MPI_Request *request)
{
    void *const *const freed = (void *const *)*request;

    MPI_Request_free(request);
    check_unhooked(freed, "when it is freed");
}

static void start_many(void)
{
    static MPI_Request requests[2 * MANY + 2];
    int bytes[MANY];

    for (int i = 0; i < MANY; i++) {
        bytes[i] = 10 + i;
        MPI_Recv_init(into + i * 1000, bytes[i], MPI_BYTE, source, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Send_init(from, bytes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[MANY + i]);
    }
    MPI_Send_init(from, 5, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[2 * MANY]);
    MPI_Recv_init(into, 5, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[2 * MANY + 1]);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Startall(2 * MANY + 2, requests);
        MPI_Waitall(2 * MANY + 2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++) tally_add("SEND_INIT", me, to, bytes[i]);
    }
    for (int i = 0; i < 2 * MANY + 2; i++) free_request(&requests[i]);
}

/* From here on, one request has a start function of Open MPI's collectives. */
static void start_with_collective(void)
{
    MPI_Request requests[4];

    MPI_Recv_init(into, 50, MPI_BYTE, source, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(from, 40, MPI_BYTE, to, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Bcast_init(into + LARGE, 30, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    MPI_Ssend_init(from, 20, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[3]);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Startall(4, requests);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        tally_add("SEND_INIT", me, to, 40);
        for (int rank = 1; rank < ranks && me == 0; rank++) tally_add("BCAST_INIT", me, rank, 30);
    }
    for (int i = 0; i < 4; i++) free_request(&requests[i]);
}

static void free_while_active(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];

        MPI_Recv_init(into, LARGE, MPI_BYTE, source, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Send_init(from, LARGE - round, MPI_BYTE, to, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Startall(2, requests);
        tally_add("SEND_INIT", me, to, LARGE - round);
        free_request(&requests[1]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        free_request(&requests[0]);
    }
}

/* The receiver is late, so Open MPI sends every message except the first by a new request. */
static void start_again_before_it_left(void)
{
    MPI_Request request;

    MPI_Bsend_init(from, LARGE, MPI_BYTE, to, 3, MPI_COMM_WORLD, &request);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2)
            MPI_Start(&request);
        else
            MPI_Startall(1, &request);
        tally_add("BSEND_INIT", me, to, LARGE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++)
        MPI_Recv(into, LARGE, MPI_BYTE, source, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free_request(&request);
}

/* MPI_Finalize calls this function first, while ibprof still records. */
static int free_kept(MPI_Comm self, int key, void *value, void *state)
{
    (void)self, (void)key, (void)value, (void)state;
    for (int i = 0; i < 2; i++) free_request(&kept[i]);
    return MPI_SUCCESS;
}

/* Open MPI 4 calls this function next, after ibprof's recording ended; Open MPI 5 never calls this function. */
static int check_left(MPI_Comm world, int key, void *value, void *state)
{
    (void)world, (void)key, (void)value, (void)state;
    for (int i = 0; i < 2; i++) check_unhooked((void *const *)left[i], "at the end");
    return MPI_SUCCESS;
}

static void start_pair(MPI_Request *requests, int tag)
{
    MPI_Recv_init(into, 8, MPI_BYTE, source, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(from, 8, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Startall(2, requests);
    tally_add("SEND_INIT", me, to, 8);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void keep_until_the_end(void)
{
    int key;

    start_pair(kept, 4);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_kept, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    start_pair(left, 5);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, check_left, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
}

int main(int argc, char **argv)
{
    const int room = 2 * ROUNDS * LARGE;
    int level;

    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    to = (me + 1) % ranks;
    source = (me + ranks - 1) % ranks;
    from = calloc(1, LARGE);
    into = malloc(LARGE + 1000);
    MPI_Buffer_attach(malloc((size_t)room), room);
    start_many();
    start_again_before_it_left();
    start_with_collective();
    free_while_active();
    start_again_before_it_left();
    keep_until_the_end();
    tally_write(me);
    MPI_Finalize();
    return 0;
}
