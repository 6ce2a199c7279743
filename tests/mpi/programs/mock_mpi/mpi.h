/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The header of mock.c: an MPI with handles unlike the handles of real MPIs.
 */
#ifndef MOCK_MPI_H
#define MOCK_MPI_H

struct mock_object {
    void *inner;
};
typedef struct mock_object *MPI_Comm, *MPI_Datatype, *MPI_Request, *MPI_Win, *MPI_Group, *MPI_Info;
typedef void MPI_Status;

/* Every handle points into this array. */
extern struct mock_object mock_objects[256];
enum { MOCK_WORLD = 1, MOCK_SELF, MOCK_BYTE, MOCK_NO_INFO, MOCK_FIRST_FREE };
#define MPI_COMM_WORLD (&mock_objects[MOCK_WORLD])
#define MPI_COMM_SELF (&mock_objects[MOCK_SELF])
#define MPI_BYTE (&mock_objects[MOCK_BYTE])
#define MPI_INFO_NULL (&mock_objects[MOCK_NO_INFO])
#define MPI_STATUS_IGNORE NULL

#define MOCK_CALLS                                                                                                     \
    CALL(Comm_rank, (MPI_Comm a, int *b), (COMM(a), b))                                                                \
    CALL(Comm_size, (MPI_Comm a, int *b), (COMM(a), b))                                                                \
    CALL(Comm_group, (MPI_Comm a, MPI_Group * b), (COMM(a), MADE(b)))                                                  \
    CALL(Comm_remote_group, (MPI_Comm a, MPI_Group * b), (COMM(a), MADE(b)))                                           \
    CALL(Comm_test_inter, (MPI_Comm a, int *b), (COMM(a), b))                                                          \
    CALL(Comm_dup, (MPI_Comm a, MPI_Comm * b), (COMM(a), MADE(b)))                                                     \
    CALL(Comm_free, (MPI_Comm * a), (KEPT(a)))                                                                         \
    CALL(Group_size, (MPI_Group a, int *b), (COMM(a), b))                                                              \
    CALL(Group_free, (MPI_Group * a), (KEPT(a)))                                                                       \
    CALL(Group_translate_ranks, (MPI_Group a, int b, const int *c, MPI_Group d, int *e), (COMM(a), b, c, COMM(d), e))  \
    CALL(Type_size, (MPI_Datatype a, int *b), (COMM(a), b))                                                            \
    CALL(Type_size_x, (MPI_Datatype a, long long *b), (COMM(a), b))                                                    \
    CALL(Barrier, (MPI_Comm a), (COMM(a)))                                                                             \
    CALL(Bcast, (void *a, int b, MPI_Datatype c, int d, MPI_Comm e), (a, b, COMM(c), d, COMM(e)))                      \
    CALL(Send, (const void *a, int b, MPI_Datatype c, int d, int e, MPI_Comm f), (a, b, COMM(c), d, e, COMM(f)))       \
    CALL(Recv, (void *a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Status *g),                              \
         (a, b, COMM(c), d, e, COMM(f), STATUS(g)))                                                                    \
    CALL(Irecv, (void *a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request *g),                            \
         (a, b, COMM(c), d, e, COMM(f), MADE(g)))                                                                      \
    CALL(Send_init, (const void *a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request *g),                  \
         (a, b, COMM(c), d, e, COMM(f), MADE(g)))                                                                      \
    CALL(Start, (MPI_Request * a), (KEPT(a)))                                                                          \
    CALL(Startall, (int a, MPI_Request *b), (a, KEPT(b)))                                                              \
    CALL(Request_free, (MPI_Request * a), (KEPT(a)))                                                                   \
    CALL(Ibarrier, (MPI_Comm a, MPI_Request * b), (COMM(a), MADE(b)))                                                  \
    CALL(Ibcast, (void *a, int b, MPI_Datatype c, int d, MPI_Comm e, MPI_Request *f),                                  \
         (a, b, COMM(c), d, COMM(e), MADE(f)))                                                                         \
    CALL(Wait, (MPI_Request * a, MPI_Status * b), (KEPT(a), STATUS(b)))                                                \
    CALL(Win_create, (void *a, long b, int c, MPI_Info d, MPI_Comm e, MPI_Win *f),                                     \
         (a, b, c, COMM(d), COMM(e), MADE(f)))                                                                         \
    CALL(Win_get_group, (MPI_Win a, MPI_Group * b), (COMM(a), MADE(b)))                                                \
    CALL(Win_fence, (int a, MPI_Win b), (a, COMM(b)))                                                                  \
    CALL(Win_free, (MPI_Win * a), (KEPT(a)))                                                                           \
    CALL(Put, (const void *a, int b, MPI_Datatype c, int d, long e, int f, MPI_Datatype g, MPI_Win h),                 \
         (a, b, COMM(c), d, e, f, COMM(g), COMM(h)))                                                                   \
    CALL(Init, (int *a, char ***b), (a, b))                                                                            \
    CALL(Initialized, (int *a), (a))                                                                                   \
    CALL(Finalized, (int *a), (a))                                                                                     \
    CALL(Query_thread, (int *a), (a))                                                                                  \
    CALL(Finalize, (void), ())

#define CALL(name, parameters, arguments) int MPI_##name parameters;
MOCK_CALLS
#undef CALL

int MPI_Get_library_version(char *text, int *length);
int MPI_Get_version(int *version, int *subversion);

#endif
