/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls with wrong arguments call an error handler of the program. The handler returns, or leaves the call by longjmp
 * (in C++ by an exception). Between these calls, the program sends the same messages in all cases:
 *
 *     non_local_exits returned|left|signalled|threaded
 *
 * signalled: a signal handler on a separate stack jumps. threaded: another thread than the first leaves calls.
 */
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* If a program may have threads, MPICH calls a handler with a held lock, and hangs if the handler never returns. */
#ifdef OPEN_MPI
#define LEVEL_OF_THREADS MPI_THREAD_MULTIPLE
#else
#define LEVEL_OF_THREADS MPI_THREAD_SERIALIZED
#endif

static int me, ranks, next, previous;
static int left;
static bool is_to_leave, by_signal;

/* -- exits ------------------------------------------------------------------------------------------------------------ */

#ifdef __cplusplus
struct failure {};
#define LEAVE throw failure()
#define TRY try
#define CATCH catch(const failure &)
#else
static sigjmp_buf back; /* target of the jump; only one thread jumps */
#define LEAVE siglongjmp(back, 1)
#define TRY if (!sigsetjmp(back, 1))
#define CATCH else
#endif

#ifndef __cplusplus
static void on_signal(int number)
{
    (void)number;
    LEAVE;
}
#endif

static void leave(void)
{
    left++;
    if (!is_to_leave) return;
#ifndef __cplusplus
    if (by_signal) raise(SIGUSR1);
#endif
    LEAVE;
}

static void on_error(MPI_Comm *communicator, int *code, ...)
{
    (void)communicator, (void)code;
    leave();
}

static void on_window_error(MPI_Win *window, int *code, ...)
{
    (void)window, (void)code;
    leave();
}

/* -- messages in between ------------------------------------------------------------------------------------------------ */

static int sum;
static MPI_Request persistent[2];

static void send(int bytes)
{
    static char from[1000], into[1000];
    MPI_Request requests[2];

    MPI_Startall(2, persistent);
    MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
    MPI_Irecv(into, bytes, MPI_BYTE, previous, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(from, bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Irecv(into, bytes + 1, MPI_BYTE, previous, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(from, bytes + 1, MPI_BYTE, next, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Sends from a much deeper frame than the call that was left. */
static void send_deep(int bytes, int depth)
{
    volatile char room[4096];
    int mine = 1, all = 0;

    room[0] = room[sizeof room - 1] = 0;
    if (depth) {
        send_deep(bytes, depth - 1);
    } else {
        send(bytes);
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
    }
    room[1] = room[2];
}

static void go_on(int bytes)
{
    int mine[4] = {me, me, me, me}, all[64 * 4];

    if (bytes % 2) send_deep(bytes, 8);
    send(bytes);
    MPI_Allgather(mine, 4, MPI_INT, all, 4, MPI_INT, MPI_COMM_WORLD);
    sum += all[4 * previous];
}

/* -- calls that are left ------------------------------------------------------------------------------------------------ */

#define FAIL(call)                                                                                                     \
    do {                                                                                                               \
        TRY                                                                                                            \
        {                                                                                                              \
            call;                                                                                                      \
        }                                                                                                              \
        CATCH                                                                                                          \
        {                                                                                                              \
        }                                                                                                              \
        go_on(bytes++);                                                                                                \
    } while (0)

static void fail_all(void)
{
    static char buffer[8], other[8], ring[2][100];
    volatile int bytes = 10;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm communicator;
    MPI_Errhandler handler;
    MPI_Win window;
    int none = -1;

    MPI_Win_create(buffer, sizeof buffer, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_create_errhandler(on_window_error, &handler);
    MPI_Win_set_errhandler(window, handler);
    MPI_Send_init(ring[0], sizeof ring[0], MPI_BYTE, next, 3, MPI_COMM_WORLD, &persistent[0]);
    MPI_Recv_init(ring[1], sizeof ring[1], MPI_BYTE, previous, 3, MPI_COMM_WORLD, &persistent[1]);
    FAIL(MPI_Bcast(buffer, none, MPI_BYTE, 0, MPI_COMM_WORLD));
    FAIL(MPI_Alltoall(buffer, none, MPI_BYTE, other, 1, MPI_BYTE, MPI_COMM_WORLD));
    FAIL(MPI_Ibcast(buffer, none, MPI_BYTE, 0, MPI_COMM_WORLD, &request));
    FAIL(MPI_Iallgather(buffer, none, MPI_BYTE, other, 1, MPI_BYTE, MPI_COMM_WORLD, &request));
    FAIL(MPI_Send(buffer, none, MPI_BYTE, next, 0, MPI_COMM_WORLD));
    FAIL(MPI_Isend(buffer, none, MPI_BYTE, next, 0, MPI_COMM_WORLD, &request));
    FAIL(MPI_Send_init(buffer, none, MPI_BYTE, next, 0, MPI_COMM_WORLD, &request));
    FAIL(MPI_Sendrecv(buffer, none, MPI_BYTE, next, 0, other, 1, MPI_BYTE, previous, 0, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE));
    FAIL(MPI_Comm_dup(MPI_COMM_NULL, &communicator));
    FAIL(MPI_Start(&request));
    FAIL(MPI_Put(buffer, none, MPI_BYTE, next, 0, 1, MPI_BYTE, window));
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
    MPI_Win_free(&window);
    MPI_Errhandler_free(&handler);
}

/* -- calls that are not left: jumps start and end within them ----------------------------------------------------------- */

static void add(void *from, void *into, int *count, MPI_Datatype *type)
{
    volatile int i = 0;

    (void)type;
    TRY
    {
        if (is_to_leave) LEAVE;
    }
    CATCH
    {
    }
    for (; i < *count; i++) ((int *)into)[i] += ((int *)from)[i];
}

static void reduce(void)
{
    int mine[3] = {me, 1, 2}, all[3];
    MPI_Op operation;

    MPI_Op_create(add, 1, &operation);
    for (int i = 0; i < 3; i++) {
        MPI_Allreduce(mine, all, 3, MPI_INT, operation, MPI_COMM_WORLD);
        MPI_Scan(mine, all, 3, MPI_INT, operation, MPI_COMM_WORLD);
        sum += all[0];
    }
    MPI_Op_free(&operation);
}

/* ----------------------------------------------------------------------------------------------------------------------- */

static void *run(void *unused)
{
    MPI_Errhandler handler;

#ifndef __cplusplus
    static char stack[1 << 16];
    stack_t other;
    struct sigaction action;

    memset(&other, 0, sizeof other);
    other.ss_sp = stack;
    other.ss_size = sizeof stack;
    sigaltstack(&other, NULL);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
#endif
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    fail_all();
    reduce();
    MPI_Errhandler_free(&handler);
    return unused;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "returned";
    const bool is_threaded = !strcmp(how, "threaded");
    pthread_t thread;
    int level;

    MPI_Init_thread(&argc, &argv, is_threaded ? LEVEL_OF_THREADS : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    next = (me + 1) % ranks;
    previous = (me + ranks - 1) % ranks;
    is_to_leave = strcmp(how, "returned") != 0;
    by_signal = !strcmp(how, "signalled");
    if (is_threaded) {
        pthread_create(&thread, NULL, run, NULL);
        pthread_join(thread, NULL);
    } else {
        run(NULL);
    }
    if (!me) printf("%d left, sum %d\n", left, sum);
    MPI_Finalize();
    return 0;
}
