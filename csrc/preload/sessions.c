/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of the calls by which MPI-4's programs begin and end without MPI_Init. Recording ends with the last session of a
 * program that began with one.
 */
#include "system.h"
#include "current.h"
#include "lifecycle.h"
#include "next.h"
#include "operations.h"

static int open_sessions;

static void begin(const void *session)
{
    if (__atomic_fetch_add(&open_sessions, 1, __ATOMIC_RELAXED) || ibp_is_started()) return;
    ibp_mpi.session = ibp_mpi.abi == IBP_ABI_MPICH ? *(const int *)session : *(const ibp_handle *)session;
    if (ibp_mpi.abi == IBP_ABI_OPENMPI) ibp_start();
}

/* MPICH opens the network for the first communicator of more than one process. */
static void begin_late(void)
{
    if (ibp_mpi.session && !ibp_is_started()) ibp_start();
}

/* Returns whether this is the end. */
static bool end(void)
{
    if (__atomic_sub_fetch(&open_sessions, 1, __ATOMIC_RELAXED) || !ibp_mpi.session) return false;
    ibp_stop();
    ibp_mpi_close();
    return true;
}

#define SESSION_INIT(exported)                                                                                         \
    IBP_DEFINE(exported, ibp_handle info, ibp_handle handler, void *session)                                           \
    {                                                                                                                  \
        static int (*next)(ibp_handle, ibp_handle, void *);                                                            \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        ibp_prepare();                                                                                                 \
        result = next(info, handler, session);                                                                         \
        if (!result) begin(session);                                                                                   \
        return result;                                                                                                 \
    }
SESSION_INIT(MPI_Session_init)
SESSION_INIT(PMPI_Session_init)

#define COMM_CREATE(exported)                                                                                          \
    IBP_DEFINE(exported, ibp_handle group, const char *tag, ibp_handle info, ibp_handle handler, void *communicator)   \
    {                                                                                                                  \
        static int (*next)(ibp_handle, const char *, ibp_handle, ibp_handle, void *);                                  \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (ibp_is_active() && !ibp_current.operation) {                                                               \
            ibp_enter((struct ibp_current){                                                                            \
                .operation = IBP_OPERATION_Comm_create_from_group,                                                     \
                .kind = IBP_CALL_BLOCKING,                                                                             \
            });                                                                                                        \
            result = next(group, tag, info, handler, communicator);                                                    \
            ibp_leave();                                                                                               \
            return result;                                                                                             \
        }                                                                                                              \
        result = next(group, tag, info, handler, communicator);                                                        \
        if (!result) begin_late();                                                                                     \
        return result;                                                                                                 \
    }
COMM_CREATE(MPI_Comm_create_from_group)
COMM_CREATE(PMPI_Comm_create_from_group)

#define SESSION_FINALIZE(exported)                                                                                     \
    IBP_DEFINE(exported, void *session)                                                                                \
    {                                                                                                                  \
        static int (*next)(void *);                                                                                    \
        bool last;                                                                                                     \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        last = end();                                                                                                  \
        result = next(session);                                                                                        \
        if (last) ibp_hand_over();                                                                                     \
        return result;                                                                                                 \
    }
SESSION_FINALIZE(MPI_Session_finalize)
SESSION_FINALIZE(PMPI_Session_finalize)
