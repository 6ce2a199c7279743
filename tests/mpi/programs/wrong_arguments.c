/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Makes calls with wrong arguments. Prints how often each call calls an error handler, and whether the call returns an
 * error. ibprof must not pass wrong arguments to MPI itself, because MPI would also call handlers for ibprof's calls.
 */
#include <mpi.h>
#include <stdio.h>

static int heard;

static void on_error(MPI_Comm *communicator, int *code, ...)
{
    (void)communicator, (void)code;
    heard++;
}

static void on_window_error(MPI_Win *window, int *code, ...)
{
    (void)window, (void)code;
    heard++;
}

static int me;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int failed;                                                                                                    \
                                                                                                                       \
        heard = 0;                                                                                                     \
        failed = (call) != MPI_SUCCESS;                                                                                \
        if (!me) printf("%d %d %s\n", heard, failed, #call);                                                           \
    } while (0)

int main(int argc, char **argv)
{
    static char a[8], b[8];
    const MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Errhandler handler, window_handler;
    MPI_Comm communicator = MPI_COMM_NULL;
    int extent = 1000, periodic = 0, none = -1, far = 1000;
    MPI_Win window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &me);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(world, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Win_create(a, sizeof a, 1, MPI_INFO_NULL, world, &window);
    MPI_Win_create_errhandler(on_window_error, &window_handler);
    MPI_Win_set_errhandler(window, window_handler);
    for (int i = 0; i < 2; i++) {
        TRY(MPI_Send(a, 1, MPI_DATATYPE_NULL, 0, 0, world));
        TRY(MPI_Send(a, 1, MPI_BYTE, far, 0, world));
        TRY(MPI_Send(a, 1, MPI_BYTE, 0, 0, MPI_COMM_NULL));
        TRY(MPI_Isend(a, 1, MPI_DATATYPE_NULL, 0, 0, world, &request));
        TRY(MPI_Send_init(a, none, MPI_BYTE, 0, 0, world, &request));
        TRY(MPI_Sendrecv(a, 1, MPI_DATATYPE_NULL, 0, 0, b, 1, MPI_BYTE, 0, 0, world, MPI_STATUS_IGNORE));
        TRY(MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, world));
        TRY(MPI_Bcast(a, 1, MPI_BYTE, 0, MPI_COMM_NULL));
        TRY(MPI_Ibcast(a, 1, MPI_BYTE, 0, MPI_COMM_NULL, &request));
        TRY(MPI_Iallreduce(a, b, 1, MPI_INT, MPI_OP_NULL, world, &request));
        TRY(MPI_Comm_dup(MPI_COMM_NULL, &communicator));
        TRY(MPI_Comm_split(MPI_COMM_NULL, 0, 0, &communicator));
        TRY(MPI_Cart_create(world, 1, &extent, &periodic, 0, &communicator));
        TRY(MPI_Cart_create(MPI_COMM_NULL, 1, &extent, &periodic, 0, &communicator));
        TRY(MPI_Start(&request));
        TRY(MPI_Put(a, none, MPI_BYTE, 0, 0, 1, MPI_BYTE, window));
        TRY(MPI_Put(a, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_BYTE, window));
        TRY(MPI_Put(a, 1, MPI_BYTE, far, 0, 1, MPI_BYTE, window));
        TRY(MPI_Put(a, 1, MPI_BYTE, 0, 0, 1, MPI_BYTE, MPI_WIN_NULL));
        TRY(MPI_Get(a, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_BYTE, window));
        TRY(MPI_Accumulate(a, 1, MPI_BYTE, far, 0, 1, MPI_BYTE, MPI_SUM, window));
    }
    MPI_Win_free(&window);
    MPI_Errhandler_free(&window_handler);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return 0;
}
