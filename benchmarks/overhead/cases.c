/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A rank that sends small messages to itself as real programs do. Prints the nanoseconds of a message in
 * the fastest of many batches, each shorter than a time slice of the scheduler. A message is Irecv, Send and Wait; in
 * the Persistent cases Startall and Waitall of a send and a receive.
 *
 *     cases CASE MESSAGES
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 20000
#define WARM_UP 100
#define THREADS_MAX 2

/* The objects that one thread uses. */
struct ends {
    MPI_Comm communicator, other_communicator;
    MPI_Datatype type, other_type;
    MPI_Request persistent[2];
    double from[4], into[4];
    double least_ns;
    long messages;
};

static void send_one(struct ends *ends, MPI_Comm communicator, MPI_Datatype type)
{
    MPI_Request request;

    MPI_Irecv(ends->into, 1, type, 0, 1, communicator, &request);
    MPI_Send(ends->from, 1, type, 0, 1, communicator);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Each function sends two messages. Callgrind counts the instructions of these functions; see cases.py. */

static __attribute__((noinline)) void exchange_plain(struct ends *ends)
{
    send_one(ends, ends->communicator, ends->type);
    send_one(ends, ends->other_communicator, ends->other_type);
}

static __attribute__((noinline)) void exchange_persistent(struct ends *ends)
{
    MPI_Status statuses[2];

    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, ends->persistent);
        MPI_Waitall(2, ends->persistent, statuses);
    }
}

static const struct {
    const char *name;
    int thread_level, threads;
    enum { WORLD, SELF, DUP, SPLIT, TWO } communicator;
    enum { ONE_TYPE, TWO_TYPES, DERIVED } types;
    void (*exchange)(struct ends *);
} cases[] = {
    {"World", MPI_THREAD_SINGLE, 1, WORLD, ONE_TYPE, exchange_plain},
    {"Self", MPI_THREAD_SINGLE, 1, SELF, ONE_TYPE, exchange_plain},
    {"Dup", MPI_THREAD_SINGLE, 1, DUP, ONE_TYPE, exchange_plain},
    {"Split", MPI_THREAD_SINGLE, 1, SPLIT, ONE_TYPE, exchange_plain},
    {"TwoCommunicators", MPI_THREAD_SINGLE, 1, TWO, ONE_TYPE, exchange_plain},
    {"TwoTypes", MPI_THREAD_SINGLE, 1, WORLD, TWO_TYPES, exchange_plain},
    {"DerivedType", MPI_THREAD_SINGLE, 1, WORLD, DERIVED, exchange_plain},
    {"Persistent", MPI_THREAD_SINGLE, 1, WORLD, ONE_TYPE, exchange_persistent},
    {"PersistentDup", MPI_THREAD_SINGLE, 1, DUP, ONE_TYPE, exchange_persistent},
    {"ThreadMultiple", MPI_THREAD_MULTIPLE, 1, WORLD, ONE_TYPE, exchange_plain},
    {"ThreadMultipleDup", MPI_THREAD_MULTIPLE, 1, DUP, TWO_TYPES, exchange_plain},
    {"TwoThreads", MPI_THREAD_MULTIPLE, 2, DUP, ONE_TYPE, exchange_plain},
};

static int chosen;

static MPI_Comm make_communicator(void)
{
    MPI_Comm made = MPI_COMM_WORLD;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (cases[chosen].communicator == SELF) return MPI_COMM_SELF;
    if (cases[chosen].communicator == SPLIT) MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &made);
    if (cases[chosen].communicator >= DUP && cases[chosen].communicator != SPLIT) MPI_Comm_dup(MPI_COMM_WORLD, &made);
    return made;
}

static void prepare(struct ends *ends, long messages)
{
    memset(ends, 0, sizeof *ends);
    ends->communicator = ends->other_communicator = make_communicator();
    if (cases[chosen].communicator == TWO) ends->other_communicator = make_communicator();
    ends->type = MPI_DOUBLE;
    if (cases[chosen].types == DERIVED) {
        MPI_Type_vector(2, 1, 2, MPI_INT, &ends->type);
        MPI_Type_commit(&ends->type);
    }
    ends->other_type = cases[chosen].types == TWO_TYPES ? MPI_INT : ends->type;
    MPI_Recv_init(ends->into, 1, ends->type, 0, 1, ends->communicator, &ends->persistent[0]);
    MPI_Send_init(ends->from, 1, ends->type, 0, 1, ends->communicator, &ends->persistent[1]);
    ends->messages = messages;
    ends->least_ns = 1e30;
}

static void *time_batches(void *argument)
{
    struct ends *ends = argument;
    void (*const exchange)(struct ends *) = cases[chosen].exchange;

    for (int i = 0; i < WARM_UP; i += 2) exchange(ends);
    for (long left = ends->messages; left > 0; left -= BATCH) {
        const long batch = left < BATCH ? left : BATCH;
        const double start = MPI_Wtime();
        double ns;

        for (long i = 0; i < batch; i += 2) exchange(ends);
        ns = (MPI_Wtime() - start) / (double)batch * 1e9;
        if (ns < ends->least_ns) ends->least_ns = ns;
    }
    return NULL;
}

static void run_threads(struct ends *ends, int threads)
{
    pthread_t others[THREADS_MAX];

    for (int i = 1; i < threads; i++) pthread_create(&others[i], NULL, time_batches, &ends[i]);
    time_batches(&ends[0]);
    for (int i = 1; i < threads; i++) pthread_join(others[i], NULL);
}

int main(int argc, char **argv)
{
    static struct ends ends[THREADS_MAX];
    int level;

    if (argc < 3) return 2;
    while (strcmp(cases[chosen].name, argv[1]))
        if (++chosen == sizeof cases / sizeof *cases) return 2;
    MPI_Init_thread(&argc, &argv, cases[chosen].thread_level, &level);
    if (level < cases[chosen].thread_level) return 3;
    for (int i = 0; i < cases[chosen].threads; i++) prepare(&ends[i], atol(argv[2]));
    run_threads(ends, cases[chosen].threads);
    printf("%.3f\n", ends[0].least_ns);
    MPI_Finalize();
    return 0;
}
