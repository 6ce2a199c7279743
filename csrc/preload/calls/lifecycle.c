/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "calls/lifecycle.h"
#include "calls/large_calls.h"
#include "calls/long_path.h"
#include "calls/non_local_exits.h"
#include "calls/source_choice.h"
#include "counting/activity.h"
#include "counting/addresses.h"
#include "counting/caller_chains.h"
#include "counting/calls.h"
#include "counting/counters.h"
#include "counting/process.h"
#include "counting/timeline.h"
#include "counting/times.h"
#include "libmpi/callers.h"
#include "libmpi/job_line.h"
#include "libmpi/library.h"
#include "libmpi/lock.h"
#include "platform/log.h"
#include "platform/text.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "recording/recording.h"
#include "sources/source.h"
#include "sources/verbs/devices.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

struct ibp_lifecycle ibp_lifecycle;

static bool started;
static IBP_THREAD_LOCAL bool is_thread_of_mpi;

bool ibp_lifecycle_is_started(void)
{
    return started;
}

bool ibp_may_change_regions(void)
{
    return ibp_is_recorded() && (is_thread_of_mpi || !started || ibp_mpi.thread_level >= 2);
}

/* -- starting ------------------------------------------------------------------------------------------------------ */

static void hook_callers(void)
{
    ibp_wrap_large_calls();
    if (ibp_sites_are_wanted()) ibp_bindings_hook();
    ibp_interpose_longjmp();
}

void ibp_lifecycle_prepare(void)
{
    static bool prepared;

    if (prepared) return;
    prepared = true;
    ibp_verbosity = (int)ibp_text_number(ibp_environment("IBPROF_VERBOSE"));
    if (ibp_mpi_find()) return;
    ibp_times_prepare();
    ibp_sources_prepare();
    hook_callers();
}

/* Return whether the memory limit (ulimit -v) is so low that the memory of ibprof could be too much for the program. */
static bool is_memory_scarce(void)
{
    const uint64_t spare = UINT64_C(32) << 20;
    struct rlimit limit;
    char pages[64];

    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return false;
    if (ibp_text_read_file("/proc/self/statm", pages, sizeof pages) <= 0) return true;
    return ibp_text_number(pages) * (uint64_t)sysconf(_SC_PAGESIZE) + spare > limit.rlim_cur;
}

static void say_unknown_operations(const char *unknown)
{
    char known[3584], said[4096];

    if (!*unknown) return;
    ibp_operations_list(known, sizeof known);
    snprintf(said, sizeof said, "%s%s; known are %s", unknown,
             ibp_operations_filtered ? "" : " (no known name, so all operations are recorded)", known);
    ibp_say_once_a_job("IBPROF names unknown operations", said);
}

static void say_unknown_source(void)
{
    char unknown[256];

    ibp_sources_describe_unknown(unknown, sizeof unknown);
    if (*unknown) ibp_say_once_a_job("IBPROF_SOURCE has an unknown value", unknown);
}

static void say_invalid_numbers(void)
{
    if (!ibp_text_is_number(ibp_environment("IBPROF_CALLERS")))
        ibp_say_once_a_job("IBPROF_CALLERS", "expected a number from 0 to 16, so no callers are recorded");
    if (!ibp_text_is_number(ibp_environment("IBPROF_INTERVAL")))
        ibp_say_once_a_job("IBPROF_INTERVAL", "expected whole milliseconds, so no snapshots are taken");
}

/* If no source attaches, record calls and their times, but no bytes. */
static void record_times_alone(void)
{
    hook_callers(); /* repeated, because ibp_sources_choose has removed all redirections */
    ibp_source = &ibp_no_source;
    ibp_say_once_a_job("messages between ranks are not recorded; times inside calls are recorded", ibp_source_why_not);
}

/* Find the MPI library and choose a source. Return whether ibprof can record MPI calls or work requests. */
static bool choose_source(void)
{
    if (ibp_mpi_open(ibp_source_why_not, sizeof ibp_source_why_not)) {
        ibp_say_once_a_job(ibp_verbs_attached() ? "messages between ranks are not recorded" : "nothing is recorded",
                           ibp_source_why_not);
        return false;
    }
    if (ibp_mpi.is_behind_layer) hook_callers();
    if (is_memory_scarce()) {
        ibp_say_once_a_job("nothing is recorded",
                           "ulimit -v is less than 32 MB above the memory that the program uses now");
        return false;
    }
    ibp_threads_multiple = ibp_mpi.thread_level >= 3;
    ibp_timeline_select();
    ibp_source = ibp_sources_choose(ibp_source_why_not, sizeof ibp_source_why_not);
    if (ibp_source) ibp_source_why_not[0] = '\0';
    if (!ibp_source && ibp_times_are_wanted()) record_times_alone();
    if (ibp_source || ibp_verbs_attached()) return true;
    ibp_say_once_a_job("nothing is recorded", ibp_source_why_not);
    return false;
}

/* Create the recording, unless a work request has created it already. Return whether the recording exists. */
static bool open_recording(void)
{
    if (ibp_process_open()) return true;
    if (ibp_source) ibp_source->detach();
    ibp_say_once_a_job("nothing is recorded", ibp_process_why_not_recorded());
    return false;
}

void ibp_lifecycle_start(void)
{
    char unknown[256];

    if (started) {
        ibp_process_note_missing("MPI was initialised again after its end: messages from then on are missing\n");
        return;
    }
    started = true;
    is_thread_of_mpi = true;
    ibp_operations_select(ibp_environment("IBPROF"), unknown, sizeof unknown);
    if (!choose_source() || !open_recording()) return;
    say_unknown_operations(unknown);
    say_unknown_source();
    say_invalid_numbers();
    ibp_process_describe_rank(ibp_source ? ibp_source->source : IBP_SOURCE_NONE);
    ibp_source_note_gaps();
    (void)ibp_recording_copy(); /* readers then know this rank even if its node fails */
    if (!ibp_source) return;
    if (ibp_source->sees_host()) ibp_process_record()->flags |= IBP_PROCESS_SEES_HOST;
    if (!ibp_mpi.is_behind_layer) ibp_process_record()->flags |= IBP_PROCESS_DEMANDS;
    ibp_addresses_record();
    ibp_timeline_begin(ibp_source->knows_addresses ? 0 : (uint32_t)ibp_mpi.size);
    ibp_activity_begin(ibp_source->source, ibp_source->labels_sends && !ibp_mpi.is_behind_layer);
    ibp_wrappers_choose();
}

/* -- stopping ------------------------------------------------------------------------------------------------------ */

void ibp_lifecycle_stop(void)
{
    if (!ibp_is_recorded()) return;
    if (ibp_recording_why_full()) ibp_counters_note_full();
    ibp_process_finish();
    ibp_activity_end();
    ibp_wrappers_choose();
    if (!ibp_source || *ibp_source_why_not) return;
    ibp_source_note_gaps();
    ibp_source->detach();
}
