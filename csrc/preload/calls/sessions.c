/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of the calls with which MPI-4 programs begin and end MPI without MPI_Init. If a program begins MPI with a
 * session, recording ends when the program's last session ends.
 */
#include "platform/system.h"
#include "calls/lifecycle.h"
#include "calls/wrapper.h"
#include "counting/communicator_names.h"
#include "counting/current_call.h"
#include "counting/process.h"
#include "counting/samples.h"
#include "libmpi/library.h"
#include "platform/text.h"
#include "recording/operations.h"
#include "recording/process_state.h"

static ibp_handle read_handle(const void *handle)
{
    return ibp_mpi.abi == IBP_ABI_MPICH ? *(const int *)handle : *(const ibp_handle *)handle;
}

static void begin(const void *session)
{
    if (__atomic_fetch_add(&ibp_lifecycle.sessions, 1, __ATOMIC_RELAXED)) return;
    if (ibp_lifecycle_is_started()) {
        ibp_lifecycle_start(); /* if recording was stopped before, this call notes that messages are missing */
        return;
    }
    if (ibp_mpi.abi == IBP_ABI_NONE)
        ibp_mpi.session = 1; /* any value except 0: the handle cannot be read, because its size is unknown */
    else
        ibp_mpi.session = read_handle(session);
}

/* Return whether a group has several processes. Read the size of the group, not of the new communicator, which is
 * MPI_COMM_NULL in processes outside of the group. */
static bool has_several_processes(ibp_handle group)
{
    static int (*size_of)(ibp_handle, int *);
    int size = 0;

    IBP_FIND_NEXT(size_of, "MPI_Group_size");
    return size_of(group, &size) || size > 1;
}

/* Begin recording when the program creates its first communicator. If the program creates no communicator before
 * MPI_Init, recording begins at MPI_Init. */
static void begin_recording(void)
{
    if (ibp_mpi.session && !ibp_lifecycle_is_started()) ibp_lifecycle_start();
}

/* With MPICH, begin recording at the first communicator of several processes, because MPICH opens the network for this
 * communicator. Before MPICH has opened the network, a source cannot attach. */
static void begin_recording_with(ibp_handle group, bool is_between_groups)
{
    if (!ibp_mpi.session || ibp_lifecycle_is_started()) return;
    if (ibp_mpi.abi == IBP_ABI_NONE || is_between_groups || has_several_processes(group)) begin_recording();
}

/* Close a session. Return whether MPI ends with this session. MPI does not end if the program has also called
 * MPI_Init. */
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

/* Compute the name (communicator_names.h) of a communicator that was created from a group. */
static void name_made(unsigned operation, const char *tag, const void *made)
{
    const struct ibp_creation making = {.operation = operation, .tag = ibp_text_hash(IBP_HASH_START, tag ? tag : "")};

    if (ibp_sampling) ibp_name_made(read_handle(made), &making);
}

/* Define wrappers of calls that can create the first communicator of a program that has not called MPI_Init. */
#define CREATE(exported, name, parameters, arguments, is_between_groups)                                               \
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
            if (!result) name_made(IBP_OPERATION_##name, tag, made);                                                   \
            return result;                                                                                             \
        }                                                                                                              \
        result = next arguments;                                                                                       \
        if (!result) begin_recording_with(group, is_between_groups);                                                   \
        if (!result) name_made(IBP_OPERATION_##name, tag, made);                                                       \
        return result;                                                                                                 \
    }
#define UNPACK(...) __VA_ARGS__
#define BOTH(name, parameters, arguments, is_between_groups)                                                           \
    CREATE(MPI_##name, name, parameters, arguments, is_between_groups)                                                 \
    CREATE(PMPI_##name, name, parameters, arguments, is_between_groups)

BOTH(Comm_create_from_group, (ibp_handle group, const char *tag, ibp_handle info, ibp_handle handler, void *made),
     (group, tag, info, handler, made), false)
BOTH(Intercomm_create_from_groups,
     (ibp_handle group, int leader, ibp_handle remote_group, int remote_leader, const char *tag, ibp_handle info,
      ibp_handle handler, void *made),
     (group, leader, remote_group, remote_leader, tag, info, handler, made), true)

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
