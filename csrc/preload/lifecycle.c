/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of MPI_Init, MPI_Finalize and MPI_Pcontrol, and what happens at them. Before MPI is initialised nothing does: this
 * library is also loaded into mpirun, shells and whatever else the user starts.
 */
#include "system.h"
#include "lifecycle.h"
#include "addresses.h"
#include "context.h"
#include "counters.h"
#include "current.h"
#include "large_calls.h"
#include "launch.h"
#include "left_calls.h"
#include "libmpi.h"
#include "next.h"
#include "operations.h"
#include "ports.h"
#include "recording.h"
#include "regions.h"
#include "source.h"
#include "source_verbs.h"
#include "text.h"
#include "ticks.h"
#include "transfers.h"
#include "verbs_lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const bool never;
const bool *ibp_active = &never;
bool ibp_counting = true;

bool ibp_labels_sends;

static struct ibp_process *process;

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

static void set_contexts(void)
{
    /* While ticking no call goes the short way; where sends are such calls, they need not look at more than at this. */
    const bool is_detour = ibp_ticking && ibp_labels_sends;

    if (ibp_is_active() && ibp_counting && !ibp_threads_multiple && !is_detour)
        ibp_contexts_open(ibp_mpi.world);
    else
        ibp_contexts_close();
}

/* -- starting --------------------------------------------------------------------------------------------------------- */

/* The job's one line, from its first rank. */
static void say_once(const char *about, const char *text)
{
    static bool said;

    if ((ibp_mpi.rank == 0 && !said) || ibp_verbosity > 0) ibp_say("%s: %s", about, text);
    said = true;
}

void ibp_note_full(void)
{
    if (ibp_is_active())
        say_once("the recording has no space for more",
                 "what finds no counter is added up, and every report says how much that is");
}

static void say_unknown(const char *unknown)
{
    char known[3072], said[4096];

    if (!*unknown) return;
    ibp_operations_list(known, sizeof known);
    snprintf(said, sizeof said, "%s%s; known are %s", unknown,
             ibp_operations_filtered ? "" : ", and no other, so all are recorded", known);
    say_once("IBPROF names unknown operations", said);
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
    describe_command(process->command, sizeof process->command);
    process->start_ns = ibp_clock_ns();
}

/* Why the messages of this rank are not seen; empty where they are. */
static char why_not_seen[1024];

static void describe_gaps(void)
{
    process->notes[0] = '\0';
    if (ibp_source && !*why_not_seen) ibp_source->describe_gaps(process->notes, sizeof process->notes);
    if (*why_not_seen) {
        ibp_text_append(process->notes, sizeof process->notes, "messages between ranks were not seen: ");
        ibp_text_append(process->notes, sizeof process->notes, why_not_seen);
        ibp_text_append(process->notes, sizeof process->notes, "\n");
    }
}

static void describe_rank(void)
{
    process->world_rank = (uint32_t)ibp_mpi.rank;
    process->world_size = (uint32_t)ibp_mpi.size;
    process->thread_level = (uint32_t)ibp_mpi.thread_level;
    process->source = ibp_source ? ibp_source->source : IBP_SOURCE_NONE;
    process->flags = ibp_operations_filtered ? IBP_PROCESS_FILTERED : 0;
    ibp_text_copy(process->mpi, sizeof process->mpi, ibp_mpi.version);
    if (ibp_operations_filtered) ibp_text_copy(process->operations, sizeof process->operations, environment("IBPROF"));
    describe_gaps();
}

/* Opens the recording. Returns 0, or -1 with the reason in `why`. */
static int open_recording(char *why, size_t why_bytes)
{
    const char *output = *environment("IBPROF_OUTPUT") ? environment("IBPROF_OUTPUT") : "profile.ibprof";

    process = ibp_recording_open(output, why, why_bytes);
    if (!process || ibp_counters_open(process, IBP_SOURCE_NONE) || ibp_regions_open()) {
        if (!*why) snprintf(why, why_bytes, "there is no memory or no space for counters");
        return -1;
    }
    describe_process();
    ibp_transfers_open(process);
    if (ibp_recording_is_first()) {
        ibp_ports_record();
        ibp_launch_record();
    }
    ibp_ticks_open();
    return 0;
}

static char why_not_recorded[1024];

bool ibp_record_process(void)
{
    static bool tried;

    if (ibp_wiped_open()) return false;
    ibp_verbs_lock();
    if (!tried) {
        tried = true;
        if (!open_recording(why_not_recorded, sizeof why_not_recorded))
            __atomic_store_n(&ibp_wiped->recorded, true, __ATOMIC_RELEASE);
    }
    ibp_verbs_unlock();
    return __atomic_load_n(&ibp_wiped->recorded, __ATOMIC_ACQUIRE);
}

void ibp_prepare(void)
{
    static bool prepared;

    if (prepared) return;
    prepared = true;
    ibp_verbosity = (int)ibp_text_number(environment("IBPROF_VERBOSE"));
    if (ibp_mpi_find()) return;
    ibp_sources_prepare();
    ibp_wrap_large_calls();
    ibp_left_calls_open();
}

/* Whether a limit on memory leaves so little that the program could come to miss what we, and MPI on our behalf, take. */
static bool is_memory_scarce(void)
{
    const uint64_t spare = UINT64_C(32) << 20;
    struct rlimit limit;
    char pages[64];

    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return false;
    if (ibp_text_read_file("/proc/self/statm", pages, sizeof pages) <= 0) return true;
    return ibp_text_number(pages) * (uint64_t)sysconf(_SC_PAGESIZE) + spare > limit.rlim_cur;
}

static bool started, has_world;
static IBP_THREAD_LOCAL bool is_thread_of_mpi;

bool ibp_has_world(void)
{
    return has_world;
}

/* What a recording that has ended does not have. */
static void note_missing(const char *note)
{
    if (!process || !(process->flags & IBP_PROCESS_FINALIZED) || strstr(process->notes, note)) return;
    ibp_text_append(process->notes, sizeof process->notes, note);
    (void)ibp_recording_copy();
}

bool ibp_may_change_regions(void)
{
    return ibp_is_recorded() && (is_thread_of_mpi || !started || ibp_mpi.thread_level >= 2);
}

bool ibp_is_started(void)
{
    return started;
}

void ibp_start(void)
{
    char unknown[256];

    if (started) {
        note_missing("MPI was initialised again when it had ended: what was sent from then on is missing\n");
        return;
    }
    started = true;
    is_thread_of_mpi = true;
    if (ibp_mpi_open()) {
        ibp_log(1, "nothing is recorded: the MPI library's functions cannot be found");
        return;
    }
    if (is_memory_scarce()) {
        say_once("nothing is recorded", "ulimit -v leaves the program hardly more memory than it has now");
        return;
    }
    ibp_threads_multiple = ibp_mpi.thread_level >= 3;
    ibp_operations_select(environment("IBPROF"), unknown, sizeof unknown);
    ibp_ticks_select();
    ibp_source = ibp_sources_choose(why_not_seen, sizeof why_not_seen);
    if (ibp_source) why_not_seen[0] = '\0';
    if (!ibp_source && !ibp_verbs_attached()) {
        say_once("nothing is recorded", why_not_seen);
        return;
    }
    if (!ibp_record_process()) {
        if (ibp_source) ibp_source->detach();
        say_once("nothing is recorded", why_not_recorded);
        return;
    }
    say_unknown(unknown);
    ibp_sources_describe_unknown(unknown, sizeof unknown);
    if (*unknown) say_once("IBPROF_SOURCE names no source", unknown);
    describe_rank();
    (void)ibp_recording_copy(); /* so that this rank is known of, should its node be lost */
    if (!ibp_source) return;
    ibp_addresses_record();
    ibp_counters.source = ibp_source->source;
    ibp_active = &ibp_wiped->active;
    ibp_wiped->active = true;
    ibp_labels_sends = ibp_source->labels_sends;
    ibp_ticks_open_timeline(ibp_source->knows_addresses ? 0 : (uint32_t)ibp_mpi.size);
    set_contexts();
}

void ibp_take_source_back(const char *why)
{
    ibp_wiped->active = false;
    ibp_labels_sends = false;
    set_contexts();
    ibp_counters_clear();
    ibp_source->detach();
    process->source = IBP_SOURCE_NONE;
    ibp_text_copy(why_not_seen, sizeof why_not_seen, why);
    describe_gaps();
    say_once("messages between ranks are not recorded", why);
}

/* -- stopping --------------------------------------------------------------------------------------------------------- */

/* The counters are complete. */
static void finish(void)
{
    ibp_regions_close();
    ibp_ticks_close();
    process->stop_ns = ibp_clock_ns();
    process->flags |= IBP_PROCESS_FINALIZED;
}

void ibp_stop(void)
{
    if (!ibp_is_recorded()) return;
    if (ibp_recording_is_full()) ibp_note_full();
    finish();
    ibp_wiped->active = false;
    ibp_labels_sends = false;
    set_contexts();
    if (!ibp_source || *why_not_seen) return;
    describe_gaps();
    ibp_source->detach();
}

/* The recording goes to where it was asked for; when it cannot, it stays on the node, where readers find it. */
static void hand_over(void)
{
    const int error = ibp_recording_copy();

    if (!error)
        ibp_recording_leave();
    else
        say_once("the recording stays on its nodes", strerror(error));
}

/* What MPI_Finalize itself still posts counts; what comes behind it does not. */
void ibp_hand_over(void)
{
    if (!ibp_is_recorded()) return;
    __atomic_store_n(&ibp_wiped->recorded, false, __ATOMIC_RELAXED);
    if (ibp_recording_is_first()) ibp_ports_read_again();
    hand_over();
}

/* A process without MPI has no other end. */
static __attribute__((destructor)) void end_process(void)
{
    if (!ibp_is_recorded() || process->world_size) return;
    finish();
    ibp_hand_over();
}

void ibp_set_counting(bool on)
{
    if (on == ibp_counting) return;
    ibp_lock();
    ibp_counting = on;
    set_contexts();
    ibp_regions_switch(on);
    ibp_unlock();
}

/* -- wrappers --------------------------------------------------------------------------------------------------------- */

static void enter_world(void)
{
    has_world = true;
    if (!started) ibp_mpi.session = 0; /* where one is open, nothing has been sent in it */
    ibp_start();
}

/* Returns whether this is the end: not while a session is open that the program began with. */
static bool leave_world(void)
{
    has_world = false;
    if (ibp_mpi.session) return false;
    ibp_stop();
    if (ibp_has_sessions())
        note_missing(
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
        ibp_prepare();                                                                                                 \
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
        ibp_prepare();                                                                                                 \
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
        if (is_end) ibp_hand_over();                                                                                   \
        return result;                                                                                                 \
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
        if (ibp_is_recorded()) ibp_set_counting(level != 0);                                                           \
        return next(level, a1, a2, a3, a4, a5);                                                                        \
    }
PCONTROL(MPI_Pcontrol)
PCONTROL(PMPI_Pcontrol)
