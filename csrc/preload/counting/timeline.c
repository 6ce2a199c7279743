/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/timeline.h"
#include "counting/counters.h"
#include "counting/periodic.h"
#include "counting/times.h"
#include "platform/clock.h"
#include "platform/text.h"
#include "recording/recording.h"

#include "ibprof_recording.h"

#include <string.h>

#define KEPT_MAX 512
#define SHORTEST_MS 10 /* messages read a coarse clock, with steps of a few milliseconds */
#define LONGEST_MS 1000000000
#define RANK_GROUPS (IBP_SNAPSHOT_GROUPS - 1)

static struct {
    /* The array has `made` records: first `kept` records in order of time, then dropped records for reuse. */
    struct ibp_snapshot *record[KEPT_MAX];
    uint32_t kept, made;
    uint32_t group_ranks;
    /* 0 if the user wants no snapshots, or no source sees messages. */
    uint64_t period_ns;
    /* Time at which the next snapshot is due; UINT64_MAX before ibp_timeline_open. */
    uint64_t next_ns;
    /* When a message last checked the clock: the time, and the ticks inside MPI calls so far. */
    uint64_t asked_ns;
    struct ibp_times_sum asked_sum;
    /* Unix time of the newest record. */
    uint64_t last_ns;
} timeline = {.next_ns = UINT64_MAX};

void ibp_timeline_open(uint64_t asked_ms, uint32_t world_size, uint64_t now_ns)
{
    if (asked_ms < SHORTEST_MS) asked_ms = SHORTEST_MS;
    if (asked_ms > LONGEST_MS) asked_ms = LONGEST_MS;
    timeline.period_ns = asked_ms * 1000000;
    timeline.next_ns = now_ns + timeline.period_ns;
    timeline.asked_ns = now_ns;
    timeline.group_ranks = (world_size + RANK_GROUPS - 1) / RANK_GROUPS;
}

/* Drop every second snapshot except the last snapshot, and double the period. */
static void drop_half(void)
{
    struct ibp_snapshot *dropped[KEPT_MAX / 2];
    const uint32_t half = timeline.kept / 2;

    for (uint32_t i = 0; i < half; i++) {
        dropped[i] = timeline.record[2 * i];
        timeline.record[i] = timeline.record[2 * i + 1];
        __atomic_store_n(&dropped[i]->time_ns, 0, __ATOMIC_RELEASE);
    }
    if (timeline.kept % 2) timeline.record[half] = timeline.record[timeline.kept - 1];
    timeline.kept -= half;
    memcpy(timeline.record + timeline.kept, dropped, half * sizeof *dropped);
    timeline.period_ns *= 2;
}

/* Return an unused record. If the recording is full, drop snapshots to get a record; return NULL if fewer than two
 * snapshots are kept. */
static struct ibp_snapshot *next_record(void)
{
    struct ibp_snapshot *record;

    if (timeline.kept == KEPT_MAX) drop_half();
    if (timeline.kept < timeline.made) return timeline.record[timeline.kept];
    record = ibp_recording_reserve(IBP_SEGMENT_SNAPSHOTS);
    if (record) {
        ibp_recording_publish(IBP_SEGMENT_SNAPSHOTS);
        timeline.record[timeline.made++] = record;
    } else if (timeline.kept > 1) {
        drop_half();
        record = timeline.record[timeline.kept];
    }
    return record;
}

/* Record the totals at a given time. Recorded times always increase, even if the system's time was changed, or a thread
 * waited after it had read the clock. */
static void take(uint64_t unix_ns, struct ibp_times_sum sum)
{
    struct ibp_snapshot *record = next_record();

    if (!record) return;
    if (unix_ns <= timeline.last_ns) unix_ns = timeline.last_ns + 1;
    timeline.last_ns = unix_ns;
    memset(record, 0, sizeof *record);
    record->group_ranks = timeline.group_ranks;
    ibp_counters_by_group(timeline.group_ranks, record->bytes, record->messages);
    record->ticks = sum.ticks;
    record->sampled_ticks = sum.sampled_ticks;
    __atomic_store_n(&record->time_ns, unix_ns, __ATOMIC_RELEASE);
    timeline.kept++;
}

static void note_sum(struct ibp_times_sum sum)
{
    __atomic_store_n(&timeline.asked_sum.ticks, sum.ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&timeline.asked_sum.sampled_ticks, sum.sampled_ticks, __ATOMIC_RELAXED);
}

bool ibp_timeline_is_due(uint64_t now_ns)
{
    /* Threads read and store `next_ns` and `asked_ns` without the lock. If two threads store a time at once, either
     * value may remain. */
    const bool due = now_ns >= __atomic_load_n(&timeline.next_ns, __ATOMIC_RELAXED);

    if (due) return true;
    __atomic_store_n(&timeline.asked_ns, now_ns, __ATOMIC_RELAXED);
    note_sum(ibp_times_so_far());
    return false;
}

void ibp_timeline_take(uint64_t now_ns)
{
    const uint64_t asked_ns = __atomic_load_n(&timeline.asked_ns, __ATOMIC_RELAXED);
    const uint64_t silent_ns = now_ns > asked_ns ? now_ns - asked_ns : 0;
    const uint64_t unix_ns = ibp_clock_ns();
    const struct ibp_times_sum sum = ibp_times_so_far();

    /* After a long time without messages, record the counters twice: for the time of the last message and for the
     * present time. Otherwise readers would spread the last bytes over the time without messages. */
    if (silent_ns > timeline.period_ns) take(unix_ns - silent_ns, timeline.asked_sum);
    take(unix_ns, sum);
    note_sum(sum);
    __atomic_store_n(&timeline.asked_ns, now_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&timeline.next_ns, now_ns + timeline.period_ns, __ATOMIC_RELAXED);
}

static uint64_t interval_ms;

void ibp_timeline_select(void)
{
    const char *given = ibp_environment("IBPROF_INTERVAL");

    interval_ms = ibp_text_is_number(given) ? ibp_text_number(given) : 0;
    ibp_periodic_in_messages = interval_ms > 0;
}

void ibp_timeline_begin(uint32_t world_size)
{
    static struct ibp_periodic_task task = {.is_due = ibp_timeline_is_due, .run = ibp_timeline_take};

    if (!interval_ms) return;
    ibp_timeline_open(interval_ms, world_size, ibp_clock_coarse_ns());
    ibp_periodic_add(&task);
}

void ibp_timeline_end(void)
{
    if (timeline.period_ns) ibp_timeline_take(ibp_clock_coarse_ns());
}
