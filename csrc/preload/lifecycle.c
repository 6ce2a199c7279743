/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of MPI_Init, MPI_Finalize and MPI_Pcontrol, and what happens at them. Before MPI is initialised nothing does: this
 * library is also loaded into mpirun, shells and whatever else the user starts.
 */
#include "system.h"
#include "lifecycle.h"
#include "counters.h"
#include "current.h"
#include "libmpi.h"
#include "next.h"
#include "operations.h"
#include "ports.h"
#include "recording.h"
#include "regions.h"
#include "source.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static const bool never;
const bool *ibp_active = &never;
bool ibp_counting = true;
ibp_handle ibp_plain_world, ibp_plain_world_outside;
const struct ibp_source_operations *ibp_source;

static struct ibp_process *process;

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

static void set_plain_world(void)
{
    ibp_plain_world_outside = ibp_is_active() && ibp_counting && !ibp_threads_multiple ? ibp_mpi.world : 0;
    ibp_plain_world = ibp_plain_world_outside;
}

/* -- starting --------------------------------------------------------------------------------------------------------- */

/* The job's one line, from its first rank. */
static void say_once(const char *about, const char *text)
{
    if (ibp_mpi.rank == 0 || ibp_verbosity > 0) ibp_say("%s: %s", about, text);
}

static void select_operations(void)
{
    char unknown[256], known[3072];

    if (!ibp_operations_select(environment("IBPROF"), unknown, sizeof unknown) || ibp_mpi.rank) return;
    ibp_operations_list(known, sizeof known);
    ibp_say("IBPROF names unknown operations: %s%s; known are %s", unknown,
            ibp_operations_filtered ? "" : ", and no other, so all are recorded", known);
}

static const struct ibp_source_operations *choose_source(char *why, size_t why_bytes)
{
    if (ibp_mpi.abi == IBP_ABI_OPENMPI) {
        if (!ibp_source_openmpi.attach(why, why_bytes)) return &ibp_source_openmpi;
    } else {
        snprintf(why, why_bytes, "this MPI (%s) has no place that is known yet where bytes can be seen",
                 ibp_mpi.version);
    }
    return NULL;
}

/* argv as the kernel keeps it, with blanks between. */
static void describe_command(char *command, size_t bytes)
{
    const long length = ibp_text_read_file("/proc/self/cmdline", command, bytes);

    for (long i = 0; i + 1 < length; i++)
        if (!command[i]) command[i] = ' ';
}

static void describe_process(void)
{
    process->pid = (uint32_t)getpid();
    process->world_rank = (uint32_t)ibp_mpi.rank;
    process->world_size = (uint32_t)ibp_mpi.size;
    process->thread_level = (uint32_t)ibp_mpi.thread_level;
    process->source = ibp_source->source;
    process->flags = ibp_operations_filtered ? IBP_PROCESS_FILTERED : 0;
    ibp_text_copy(process->mpi, sizeof process->mpi, ibp_mpi.version);
    if (ibp_operations_filtered) ibp_text_copy(process->operations, sizeof process->operations, environment("IBPROF"));
    describe_command(process->command, sizeof process->command);
    ibp_source->describe_gaps(process->notes, sizeof process->notes);
    process->start_ns = ibp_clock_ns();
}

/* A flag that a forked child sees as false: it shares our counters, and is not the process that they are of. */
static bool *make_flag(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool *flag = ibp_memory_map(page);

    if (flag) (void)madvise(flag, page, MADV_WIPEONFORK);
    return flag;
}

void ibp_start(void)
{
    static bool started;
    const char *output = *environment("IBPROF_OUTPUT") ? environment("IBPROF_OUTPUT") : "profile.ibprof";
    char why[1024] = "";
    bool *flag;

    if (started) return;
    started = true;
    ibp_verbosity = (int)ibp_text_number(environment("IBPROF_VERBOSE"));
    if (ibp_mpi_open()) {
        ibp_log(1, "nothing is recorded: the MPI library's functions cannot be found");
        return;
    }
    ibp_threads_multiple = ibp_mpi.thread_level >= 3;
    ibp_source = choose_source(why, sizeof why);
    if (!ibp_source) {
        say_once("nothing is recorded", why);
        return;
    }
    flag = make_flag();
    process = flag ? ibp_recording_open(output, why, sizeof why) : NULL;
    if (!process || ibp_counters_open(process, ibp_source->source) || ibp_regions_open()) {
        ibp_source->detach();
        say_once("nothing is recorded", *why ? why : "there is no memory or no space for counters");
        return;
    }
    select_operations();
    describe_process();
    if (ibp_recording_is_first()) ibp_ports_record();
    ibp_active = flag;
    *flag = true;
    set_plain_world();
}

/* -- stopping --------------------------------------------------------------------------------------------------------- */

void ibp_stop(void)
{
    if (!ibp_is_active()) return;
    ibp_regions_close();
    *(bool *)(uintptr_t)ibp_active = false;
    set_plain_world();
    process->notes[0] = '\0';
    ibp_source->describe_gaps(process->notes, sizeof process->notes);
    ibp_source->detach();
    process->stop_ns = ibp_clock_ns();
    process->flags |= IBP_PROCESS_FINALIZED;
}

void ibp_set_counting(bool on)
{
    if (on == ibp_counting) return;
    ibp_lock();
    ibp_counting = on;
    set_plain_world();
    ibp_regions_switch(on);
    ibp_unlock();
}

/* -- wrappers --------------------------------------------------------------------------------------------------------- */

#define INIT(exported)                                                                                                 \
    IBP_DEFINE(exported, int *argc, char ***argv)                                                                      \
    {                                                                                                                  \
        static int (*next)(int *, char ***);                                                                           \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        result = next(argc, argv);                                                                                     \
        if (!result) ibp_start();                                                                                      \
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
        result = next(argc, argv, required, provided);                                                                 \
        if (!result) ibp_start();                                                                                      \
        return result;                                                                                                 \
    }
INIT_THREAD(MPI_Init_thread)
INIT_THREAD(PMPI_Init_thread)

#define FINALIZE(exported)                                                                                             \
    IBP_DEFINE(exported, void)                                                                                         \
    {                                                                                                                  \
        static int (*next)(void);                                                                                      \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        ibp_stop();                                                                                                    \
        return next();                                                                                                 \
    }
FINALIZE(MPI_Finalize)
FINALIZE(PMPI_Finalize)

/* MPI_Pcontrol takes more arguments than the level, of a meaning that a tool gives them; five are passed on. */
#define PCONTROL(exported)                                                                                             \
    IBP_DEFINE(exported, int level, long a1, long a2, long a3, long a4, long a5)                                       \
    {                                                                                                                  \
        static int (*next)(int, ...);                                                                                  \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (ibp_is_active()) ibp_set_counting(level != 0);                                                             \
        return next(level, a1, a2, a3, a4, a5);                                                                        \
    }
PCONTROL(MPI_Pcontrol)
PCONTROL(PMPI_Pcontrol)
