/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of the calls by which programs of MPI-4 begin and end MPI without MPI_Init. If a program began with a
 * session, recording ends with its last one.
 */
#include "platform/system.h"
#include "calls/lifecycle.h"
#include "calls/wrapper.h"
#include "counting/current_call.h"
#include "counting/process.h"
#include "libmpi/library.h"
#include "recording/operations.h"
#include "recording/process_state.h"

static void begin(const void *session)
{
    if (__atomic_fetch_add(&ibp_lifecycle.sessions, 1, __ATOMIC_RELAXED)) return;
    if (ibp_lifecycle_is_started()) {
        ibp_lifecycle_start(); /* notes what is missing when recording has ended */
        return;
    }
    if (ibp_mpi.abi == IBP_ABI_NONE)
        ibp_mpi.session = 1; /* not a handle, which may be of any size */
    else
        ibp_mpi.session = ibp_mpi.abi == IBP_ABI_MPICH ? *(const int *)session : *(const ibp_handle *)session;
}

/* Begin recording at the first communicator, which may never be made: then the program begins by MPI_Init, if at
 * all. MPICH opens the network for the first communicator of several processes. */
static void begin_recording(void)
{
    if (ibp_mpi.session && !ibp_lifecycle_is_started()) ibp_lifecycle_start();
}

/* Close a session. Return whether MPI ends: a program that called MPI_Init meanwhile goes on. */
static bool end(void)
{
    if (__atomic_sub_fetch(&ibp_lifecycle.sessions, 1, __ATOMIC_RELAXED) || !ibp_mpi.session) return false;
    if (!ibp_lifecycle_is_started()) {
        ibp_mpi.session = 0;
        return false;
    }
    if (ibp_lifecycle.has_world) {
        ibp_mpi_close();
        return false;
    }
    ibp_lifecycle_stop();
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
        ibp_lifecycle_prepare();                                                                                       \
        result = next(info, handler, session);                                                                         \
        if (!result) begin(session);                                                                                   \
        return result;                                                                                                 \
    }
SESSION_INIT(MPI_Session_init)
SESSION_INIT(PMPI_Session_init)

/* Calls that make the first communicator of a program without MPI_COMM_WORLD. */
#define CREATE(exported, name, parameters, arguments)                                                                  \
    IBP_DEFINE(exported, UNPACK parameters)                                                                            \
    {                                                                                                                  \
        static int (*next)(UNPACK parameters);                                                                         \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (ibp_mpi.abi == IBP_ABI_OPENMPI) begin_recording();                                                         \
        if (ibp_is_active() && !ibp_is_within_call()) {                                                                \
            ibp_enter(IBP_CALL_HERE(IBP_OPERATION_##name), (struct ibp_current_call){.kind = IBP_CALL_BLOCKING});      \
            result = next arguments;                                                                                   \
            ibp_leave();                                                                                               \
            return result;                                                                                             \
        }                                                                                                              \
        result = next arguments;                                                                                       \
        if (!result) begin_recording();                                                                                \
        return result;                                                                                                 \
    }
#define UNPACK(...) __VA_ARGS__
#define BOTH(name, parameters, arguments)                                                                              \
    CREATE(MPI_##name, name, parameters, arguments)                                                                    \
    CREATE(PMPI_##name, name, parameters, arguments)

BOTH(Comm_create_from_group, (ibp_handle group, const char *tag, ibp_handle info, ibp_handle handler, void *made),
     (group, tag, info, handler, made))
BOTH(Intercomm_create_from_groups,
     (ibp_handle group, int leader, ibp_handle remote_group, int remote_leader, const char *tag, ibp_handle info,
      ibp_handle handler, void *made),
     (group, leader, remote_group, remote_leader, tag, info, handler, made))

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
        if (last) ibp_process_hand_over();                                                                             \
        return result;                                                                                                 \
    }
SESSION_FINALIZE(MPI_Session_finalize)
SESSION_FINALIZE(PMPI_Session_finalize)
