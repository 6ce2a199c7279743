/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/process.h"
#include "counting/counters.h"
#include "counting/flush.h"
#include "counting/periodic.h"
#include "counting/regions.h"
#include "counting/timeline.h"
#include "counting/transfers.h"
#include "counting/verbs_lock.h"
#include "libmpi/job_line.h"
#include "libmpi/library.h"
#include "platform/clock.h"
#include "platform/text.h"
#include "recording/adapter_choice.h"
#include "recording/interfaces.h"
#include "recording/launch.h"
#include "recording/operations.h"
#include "recording/other_transports.h"
#include "recording/ports.h"
#include "recording/process_state.h"
#include "recording/recording.h"
#include "recording/transports.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct ibp_process *process;
static char why_not_recorded[1024];
/* True if the process uses MPI. MPI then reports the rank of the process, and the recording ends when MPI ends. */
static bool is_of_mpi;
static uint64_t cpu_at_start_ns, no_core_at_start_ns;

struct ibp_process *ibp_process_record(void)
{
    return process;
}

const char *ibp_process_why_not_recorded(void)
{
    return why_not_recorded;
}

/* -- opening ------------------------------------------------------------------------------------------------------- */

/* Read the command line from the kernel, and separate arguments by blanks. */
static void describe_command(char *command, size_t bytes)
{
    const long length = ibp_text_read_file("/proc/self/cmdline", command, bytes);

    for (long i = 0; i + 1 < length; i++)
        if (!command[i]) command[i] = ' ';
}

/* Read the CPU time of the process, and the time for which its first thread has waited for a core. At the end of the
 * run, record the increase of each time since the start. */
static void note_use_of_cores(bool is_begin)
{
    char text[128];
    struct rusage use;
    uint64_t cpu_ns = 0, no_core_ns = 0;

    if (!getrusage(RUSAGE_SELF, &use))
        cpu_ns = (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * UINT64_C(1000000000) +
                 (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * UINT64_C(1000);
    if (ibp_text_read_file("/proc/self/schedstat", text, sizeof text) > 0 && strchr(text, ' '))
        no_core_ns = ibp_text_number(strchr(text, ' ') + 1);
    if (is_begin) {
        cpu_at_start_ns = cpu_ns;
        no_core_at_start_ns = no_core_ns;
    } else {
        process->cpu_ns = cpu_ns - cpu_at_start_ns;
        process->no_core_ns = no_core_ns > no_core_at_start_ns ? no_core_ns - no_core_at_start_ns : 0;
    }
}

static void describe_process(void)
{
    process->pid = (uint32_t)getpid();
    describe_command(process->command, sizeof process->command);
    process->start_ns = ibp_clock_ns();
    note_use_of_cores(true);
    ibp_other_transports_describe(process->notes, sizeof process->notes);
}

/* Create the recording, and fill the record of this process. Return 0, or -1 with the reason in `why`. */
static int open_recording(char *why, size_t why_bytes)
{
    const char *output = *ibp_environment("IBPROF_OUTPUT") ? ibp_environment("IBPROF_OUTPUT") : "profile.ibprof";

    process = ibp_recording_open(output, why, why_bytes);
    if (!process || ibp_counters_open(process, IBP_SOURCE_NONE) || ibp_regions_open()) {
        if (!*why) snprintf(why, why_bytes, "there is no memory or no space for counters");
        return -1;
    }
    describe_process();
    ibp_transfers_open(process);
    ibp_adapter_choice_record();
    if (ibp_recording_is_first()) {
        ibp_ports_record();
        ibp_interfaces_record();
        ibp_launch_record();
    }
    ibp_flush_open();
    return 0;
}

bool ibp_process_open(void)
{
    static bool tried;

    if (ibp_process_state_open()) return false;
    ibp_verbs_lock();
    if (!tried) {
        tried = true;
        if (!open_recording(why_not_recorded, sizeof why_not_recorded))
            __atomic_store_n(&ibp_process_state->recorded, true, __ATOMIC_RELEASE);
    }
    ibp_verbs_unlock();
    return __atomic_load_n(&ibp_process_state->recorded, __ATOMIC_ACQUIRE);
}

void ibp_process_describe_rank(enum ibp_source source)
{
    is_of_mpi = true;
    process->world_rank = (uint32_t)ibp_mpi.rank;
    process->world_size = (uint32_t)ibp_mpi.size;
    process->thread_level = (uint32_t)ibp_mpi.thread_level;
    process->source = source;
    process->flags = ibp_operations_filtered ? IBP_PROCESS_FILTERED : 0;
    ibp_text_copy(process->mpi, sizeof process->mpi, ibp_mpi.version);
    if (ibp_operations_filtered)
        ibp_text_copy(process->operations, sizeof process->operations, ibp_environment("IBPROF"));
}

void ibp_process_describe_without_mpi(uint32_t rank, uint32_t ranks, enum ibp_source source, const char *library)
{
    if (is_of_mpi) return;
    process->world_rank = rank;
    process->world_size = ranks;
    process->source = source;
    ibp_text_copy(process->mpi, sizeof process->mpi, library);
}

/* -- ending -------------------------------------------------------------------------------------------------------- */

void ibp_process_note_missing(const char *note)
{
    if (!process || !(process->flags & IBP_PROCESS_FINALIZED) || strstr(process->notes, note)) return;
    ibp_text_append(process->notes, sizeof process->notes, note);
    (void)ibp_recording_copy();
}

void ibp_process_finish(void)
{
    ibp_regions_close();
    ibp_timeline_end();
    ibp_periodic_end();
    process->stop_ns = ibp_clock_ns();
    note_use_of_cores(false);
    ibp_transports_record();
    process->flags |= IBP_PROCESS_FINALIZED;
}

void ibp_process_hand_over(void)
{
    int error;

    if (!ibp_is_recorded()) return;
    __atomic_store_n(&ibp_process_state->recorded, false, __ATOMIC_RELAXED);
    if (ibp_recording_is_first()) ibp_ports_read_again();
    error = ibp_recording_copy();
    if (!error)
        ibp_recording_leave();
    else /* leave the file on the storage of the node, where readers find it */
        ibp_say_once_a_job("the recording stays on its nodes", strerror(error));
}

/* End the recording at exit, if the process does not use MPI. */
static __attribute__((destructor)) void end_process(void)
{
    if (!ibp_is_recorded() || is_of_mpi) return;
    process->notes[0] = '\0';
    ibp_other_transports_describe(process->notes, sizeof process->notes);
    ibp_process_finish();
    ibp_process_hand_over();
}
