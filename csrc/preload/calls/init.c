/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of MPI_Init, MPI_Finalize and MPI_Pcontrol. Before MPI is initialised nothing is done: the library is also
 * loaded into mpirun, shells and whatever else the user starts.
 */
#include "platform/system.h"
#include "calls/lifecycle.h"
#include "calls/wrapper.h"
#include "counting/activity.h"
#include "counting/process.h"
#include "libmpi/library.h"
#include "recording/process_state.h"

static void enter_world(void)
{
    ibp_lifecycle.has_world = true;
    if (!ibp_lifecycle_is_started()) ibp_mpi.session = 0; /* nothing was sent in a session that is open */
    ibp_lifecycle_start();
}

/* Stop recording. Return whether MPI ends: not while the session that the program began with is open. */
static bool leave_world(void)
{
    ibp_lifecycle.has_world = false;
    if (ibp_mpi.session) return false;
    ibp_lifecycle_stop();
    if (__atomic_load_n(&ibp_lifecycle.sessions, __ATOMIC_RELAXED) > 0)
        ibp_process_note_missing(
            "sessions were open when MPI_Finalize was called: what was sent in them from then on is missing\n");
    return true;
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
        bool is_end;                                                                                                   \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        is_end = leave_world();                                                                                        \
        result = next();                                                                                               \
        if (is_end) ibp_process_hand_over();                                                                           \
        return result;                                                                                                 \
    }
FINALIZE(MPI_Finalize)
FINALIZE(PMPI_Finalize)

/* Further arguments of MPI_Pcontrol are defined by tools; five are passed on. */
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
