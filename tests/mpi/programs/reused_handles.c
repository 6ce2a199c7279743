/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Communicators and datatypes come and go, so MPI reuses handles for communicators with other members or another order,
 * and for datatypes of another size. Receives are pending while their communicator is freed or runs a collective. Two
 * communicators and two datatypes alternate. With `threads`, two threads use a communicator each.
 *
 *     reused_handles [threads]
 */
#include "tally.h"

#include <mpi.h>
#include <pthread.h>
#include <string.h>

#define LIVES 60
#define MESSAGES 200

static int me, ranks;
static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *operation, int to, long bytes)
{
    pthread_mutex_lock(&books);
    tally_add(operation, me, to, bytes);
    pthread_mutex_unlock(&books);
}

/* Send to the next rank of a communicator, whose members are the world's in order or in reverse. All communicators have
 * the same call sites. */
static __attribute__((noinline)) void pass_on(MPI_Comm communicator, int reversed, MPI_Datatype type, int count,
                                              int size)
{
    const int here = reversed ? ranks - 1 - me : me, to = (here + 1) % ranks;
    char from[512] = "", into[512];
    MPI_Request request;

    if (count * size > 256) abort();
    MPI_Irecv(into, count, type, (here + ranks - 1) % ranks, 3, communicator, &request);
    MPI_Send(from, count, type, to, 3, communicator);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    note("SEND", reversed ? ranks - 1 - to : to, (long)count * size);
}

static MPI_Comm make(int reversed)
{
    MPI_Comm made;

    MPI_Comm_split(MPI_COMM_WORLD, 0, reversed ? ranks - me : me, &made);
    return made;
}

/* In each round, the new communicator has the reverse order of ranks, mostly at the same address. */
static void reuse_communicators(void)
{
    for (int life = 0; life < LIVES; life++) {
        MPI_Comm communicator = make(life % 2);

        for (int i = 0; i < 3; i++) pass_on(communicator, life % 2, MPI_CHAR, 1 + i, 1);
        MPI_Comm_free(&communicator);
    }
}

/* Rank 0 frees a communicator with a pending receive. Before the message is sent, rank 0 uses another communicator. */
static void free_while_pending(void)
{
    for (int life = 0; life < LIVES; life++) {
        const int reversed = life % 2, last = ranks - 1;
        MPI_Comm communicator = make(reversed), other;
        char from[8] = "", into[8];
        MPI_Request request = MPI_REQUEST_NULL;

        pass_on(communicator, reversed, MPI_CHAR, 5, 1);
        if (me == 0) {
            MPI_Irecv(into, 7, MPI_CHAR, reversed ? 0 : last, 4, communicator, &request);
            MPI_Comm_free(&communicator);
        }
        other = make(!reversed);
        pass_on(other, !reversed, MPI_CHAR, 6, 1);
        if (me == last) {
            MPI_Send(from, 7, MPI_CHAR, reversed ? last : 0, 4, communicator);
            note("SEND", 0, 7);
        }
        if (me != 0) MPI_Comm_free(&communicator);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&other);
    }
}

/* On one communicator, a receive is posted, a collective runs, and then the message arrives. */
static void receive_around_collectives(void)
{
    MPI_Comm communicator = make(1);
    const int here = ranks - 1 - me, to = (here + 1) % ranks;

    for (int life = 0; life < LIVES; life++) {
        char from[8] = "", into[8];
        MPI_Request request;

        MPI_Irecv(into, 8, MPI_CHAR, (here + ranks - 1) % ranks, 5, communicator, &request);
        MPI_Bcast(from, 8, MPI_CHAR, life % ranks, communicator);
        MPI_Send(from, 8, MPI_CHAR, to, 5, communicator);
        note("SEND", ranks - 1 - to, 8);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&communicator);
}

static void take_turns(void)
{
    MPI_Comm forward = make(0), backward = make(1);

    for (int i = 0; i < MESSAGES; i++) {
        pass_on(forward, 0, i % 2 ? MPI_DOUBLE : MPI_SHORT, 1 + i % 3, i % 2 ? 8 : 2);
        pass_on(backward, 1, i % 3 ? MPI_SHORT_INT : MPI_CHAR, 2, i % 3 ? 6 : 1);
        pass_on(MPI_COMM_WORLD, 0, MPI_INT, 1, 4);
    }
    MPI_Comm_free(&forward);
    MPI_Comm_free(&backward);
}

/* In each round, the new datatype has another size, mostly at the same address. */
static void reuse_types(void)
{
    for (int life = 0; life < LIVES; life++) {
        MPI_Datatype type;

        MPI_Type_vector(1 + life % 5, 1, 2, life % 2 ? MPI_INT : MPI_CHAR, &type);
        MPI_Type_commit(&type);
        for (int i = 0; i < 2; i++) pass_on(MPI_COMM_WORLD, 0, type, i, (1 + life % 5) * (life % 2 ? 4 : 1));
        MPI_Type_free(&type);
    }
}

static void start_persistent(void)
{
    for (int life = 0; life < LIVES; life++) {
        const int reversed = life % 2, here = reversed ? ranks - 1 - me : me, to = (here + 1) % ranks;
        MPI_Comm communicator = make(reversed);
        char from[64] = "", into[64];
        MPI_Request requests[2];

        MPI_Recv_init(into, 64, MPI_CHAR, MPI_ANY_SOURCE, 6, communicator, &requests[0]);
        MPI_Send_init(from, 1 + life, MPI_CHAR, to, 6, communicator, &requests[1]);
        for (int i = 0; i < 5; i++) {
            MPI_Startall(2, requests);
            note("SEND_INIT", reversed ? ranks - 1 - to : to, 1 + life);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            pass_on(communicator, reversed, MPI_CHAR, 2, 1);
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
        MPI_Comm_free(&communicator);
    }
}

struct job {
    MPI_Comm communicator;
    int reversed;
};

static void *use_own(void *argument)
{
    const struct job *job = argument;

    for (int i = 0; i < 10 * MESSAGES; i++)
        pass_on(job->communicator, job->reversed, i % 2 ? MPI_DOUBLE : MPI_SHORT_INT, 1 + i % 4, i % 2 ? 8 : 6);
    return NULL;
}

static void use_by_threads(void)
{
    for (int life = 0; life < 4; life++) {
        struct job jobs[2] = {{make(0), 0}, {make(1), 1}};
        pthread_t other;

        pthread_create(&other, NULL, use_own, &jobs[1]);
        use_own(&jobs[0]);
        pthread_join(other, NULL);
        MPI_Comm_free(&jobs[life % 2].communicator);
        MPI_Comm_free(&jobs[!(life % 2)].communicator);
    }
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 && !strcmp(argv[1], "threads");
    int level;

    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    reuse_communicators();
    free_while_pending();
    receive_around_collectives();
    take_turns();
    reuse_types();
    start_persistent();
    if (threads) use_by_threads();
    MPI_Finalize();
    tally_write(me);
    return 0;
}
