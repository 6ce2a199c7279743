/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The functions of ibprof_nccl.h, for the profiler plug-in of NCCL. MPI calls may be recorded at the same time. These
 * functions and the wrappers of MPI calls need no common lock, because NCCL's records are in separate segments.
 */
#include "platform/system.h"
#include "calls/lifecycle.h"
#include "counting/periodic.h"
#include "counting/process.h"
#include "libmpi/job_line.h"
#include "libmpi/lock.h"
#include "platform/clock.h"
#include "platform/log.h"
#include "platform/text.h"
#include "recording/job_name.h"
#include "recording/process_state.h"
#include "recording/recording.h"

#include "ibprof_nccl.h"

static char library_name[IBP_TEXT_BYTES];
static bool is_rank_known;

static bool open_recording(const char *library)
{
    uint32_t rank = 0, ranks = 0;

    ibp_verbosity = (int)ibp_text_number(ibp_environment("IBPROF_VERBOSE"));
    if (!ibp_process_open()) {
        ibp_say_once_a_job("nothing is recorded", ibp_process_why_not_recorded());
        return false;
    }
    /* In a process that does not use MPI, any thread may run periodic tasks and change regions, so ibprof takes
     * locks. */
    if (!ibp_lifecycle_is_started()) ibp_threads_multiple = true;
    is_rank_known = ibp_job_rank(&rank, &ranks) && ranks;
    ibp_text_copy(library_name, sizeof library_name, library);
    ibp_process_describe_without_mpi(rank, ranks, IBP_SOURCE_NCCL, library);
    (void)ibp_recording_copy(); /* readers then know this process even if its node fails */
    return true;
}

static void set_rank(uint32_t rank, uint32_t ranks)
{
    if (!is_rank_known) ibp_process_describe_without_mpi(rank, ranks, IBP_SOURCE_NCCL, library_name);
}

static uint32_t publish(enum ibp_segment_kind kind)
{
    ibp_recording_publish(kind);
    return ibp_recording_used(kind) - 1;
}

static bool is_recording(void)
{
    return ibp_is_recorded() && ibp_counting;
}

static uint32_t find_region(void)
{
    const uint32_t region = __atomic_load_n(&ibp_process_record()->transfers_region, __ATOMIC_RELAXED);

    return region == IBP_REGION_OFF ? 0 : region;
}

static bool has_cycles(void)
{
    return ibp_clock_cycles_step() != 0;
}

static void copy_if_due(void)
{
    if (!ibp_lifecycle_is_started()) ibp_periodic_check();
}

static void lose(uint64_t bytes)
{
    __atomic_fetch_add(&ibp_process_record()->lost_bytes, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&ibp_process_record()->lost_messages, 1, __ATOMIC_RELAXED);
}

static const struct ibp_nccl_recorder recorder = {
    .version = IBP_NCCL_RECORDER_VERSION,
    .open = open_recording,
    .set_rank = set_rank,
    .reserve = ibp_recording_reserve,
    .publish = publish,
    .is_recording = is_recording,
    .region = find_region,
    .has_cycles = has_cycles,
    .clock_ns = ibp_clock_ns,
    .copy_if_due = copy_if_due,
    .lose = lose,
    .say = ibp_say_once_a_job,
};

IBP_EXPORT const struct ibp_nccl_recorder *ibprof_nccl_recorder(void);

const struct ibp_nccl_recorder *ibprof_nccl_recorder(void)
{
    return &recorder;
}
