/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of MPI_Init, MPI_Finalize and MPI_Pcontrol. Before MPI is initialised, ibprof does nothing: mpirun, shells
 * and all other programs of the user load libibprof.so too.
 */
#include "platform/system.h"
#include "calls/lifecycle.h"
#include "calls/wrapper.h"
#include "counting/activity.h"
#include "counting/process.h"
#include "libmpi/library.h"
#include "recording/process_state.h"

#include <string.h>

/* True after ibprof set an attribute that MPI_Finalize deletes after the program's last message. */
static bool has_last_attribute;
/* True after recording has stopped; MPI is about to end. */
static bool has_stopped;

/* Stop recording. Do nothing if the program began MPI with a session that is still open: MPI continues until this
 * session ends. */
static void leave_world(void)
{
    ibp_lifecycle.has_world = false;
    if (ibp_mpi.session) return;
    ibp_lifecycle_stop();
    has_stopped = true;
    if (__atomic_load_n(&ibp_lifecycle.sessions, __ATOMIC_RELAXED) > 0)
        ibp_process_note_missing("sessions were open when MPI_Finalize was called: their later messages are missing\n");
}

/* Return whether MPI_Finalize deletes ibprof's attribute. If sessions are open, MPICH deletes attributes only when the
 * last session ends, and perhaps never. */
static bool stops_in_finalize(void)
{
    return has_last_attribute && __atomic_load_n(&ibp_lifecycle.sessions, __ATOMIC_RELAXED) <= 0;
}

static int copy_nothing(ibp_handle comm, int keyval, void *state, void *value, void *copy, int *is_copied)
{
    (void)comm, (void)keyval, (void)state, (void)value, (void)copy;
    return *is_copied = 0;
}

static int delete_last(ibp_handle comm, int keyval, void *value, void *state)
{
    (void)comm, (void)keyval, (void)value, (void)state;
    if (ibp_lifecycle.has_world) leave_world();
    return 0;
}

/* MPI_Finalize first deletes the attributes of MPI_COMM_SELF, in the reverse order in which they were set (MPI 4.1,
 * 11.2.4). Callbacks of the program's attributes may still send messages: for example, HDF5 closes its files in a
 * callback. Therefore ibprof sets an attribute before the program does, so that MPI deletes this attribute last. The
 * attribute's callback stops recording. */
static void set_last_attribute(void)
{
    struct {
        int (*create)(int (*)(ibp_handle, int, void *, void *, void *, int *), int (*)(ibp_handle, int, void *, void *),
                      int *, void *);
        int (*set)(ibp_handle, int, void *);
        int (*free)(int *);
    } keyval;
    void *const functions[] = {ibp_mpi_own_function("PMPI_Comm_create_keyval"),
                               ibp_mpi_own_function("PMPI_Comm_set_attr"),
                               ibp_mpi_own_function("PMPI_Comm_free_keyval")};
    int key;

    if (!ibp_is_recorded() || ibp_mpi.session || !functions[0] || !functions[1] || !functions[2]) return;
    memcpy(&keyval, functions, sizeof keyval);
    if (keyval.create(copy_nothing, delete_last, &key, NULL)) return;
    has_last_attribute = !keyval.set(ibp_mpi.self, key, NULL);
    keyval.free(&key); /* MPI keeps the key until it deletes the attribute */
}

static void enter_world(void)
{
    ibp_lifecycle.has_world = true;
    if (!ibp_lifecycle_is_started()) ibp_mpi.session = 0; /* recording ends at MPI_Finalize, not with the session */
    ibp_lifecycle_start();
    set_last_attribute();
}

#define INIT(exported)                                                                                                 \
    IBP_DEFINE(exported, int *argc, char ***argv)                                                                      \
    {                                                                                                                  \
        static int (*next)(int *, char ***);                                                                           \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        ibp_lifecycle_prepare();                                                                                       \
        result = next(argc, argv);                                                                                     \
        if (!result) enter_world();                                                                                    \
        return result;                                                                                                 \
    }
INIT(MPI_Init)
INIT(PMPI_Init)

#define INIT_THREAD(exported)                                                                                          \
    IBP_DEFINE(exported, int *argc, char ***argv, int required, int *provided)                                         \
    {                                                                                                                  \
        static int (*next)(int *, char ***, int, int *);                                                               \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        ibp_lifecycle_prepare();                                                                                       \
        result = next(argc, argv, required, provided);                                                                 \
        if (!result) enter_world();                                                                                    \
        return result;                                                                                                 \
    }
INIT_THREAD(MPI_Init_thread)
INIT_THREAD(PMPI_Init_thread)

#define FINALIZE(exported)                                                                                             \
    IBP_DEFINE(exported, void)                                                                                         \
    {                                                                                                                  \
        static int (*next)(void);                                                                                      \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (!stops_in_finalize()) leave_world();                                                                       \
        result = next();                                                                                               \
        if (has_stopped) ibp_process_hand_over();                                                                      \
        return result;                                                                                                 \
    }
FINALIZE(MPI_Finalize)
FINALIZE(PMPI_Finalize)

/* Other tools may define further arguments of MPI_Pcontrol, so the wrapper passes on five further arguments. */
#define PCONTROL(exported)                                                                                             \
    IBP_DEFINE(exported, int level, long a1, long a2, long a3, long a4, long a5)                                       \
    {                                                                                                                  \
        static int (*next)(int, ...);                                                                                  \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (ibp_is_recorded()) ibp_set_counting(level != 0);                                                           \
        return next(level, a1, a2, a3, a4, a5);                                                                        \
    }
PCONTROL(MPI_Pcontrol)
PCONTROL(PMPI_Pcontrol)
