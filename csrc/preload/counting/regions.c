/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/regions.h"
#include "counting/contexts.h"
#include "counting/counters.h"
#include "counting/periodic.h"
#include "counting/samples.h"
#include "counting/times.h"
#include "counting/transfers.h"
#include "libmpi/lock.h"
#include "platform/clock.h"
#include "platform/memory.h"
#include "platform/text.h"
#include "recording/recording.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MARKS_MAX 1024
#define DEPTH_MAX 64
#define BUCKETS (2 * IBP_REGIONS_MAX)

static struct {
    struct ibp_region *record[IBP_REGIONS_MAX];
    /* Hash table by name. An entry is the number of a region, plus 1; 0 if the entry is free. */
    uint16_t by_name[BUCKETS];
    uint32_t count;
    /* Stack of entered regions, outermost first. If the stack is full, data of inner regions count for the last. */
    struct {
        uint32_t region;
        uint64_t since_ns;
    } entered[DEPTH_MAX];
    unsigned depth;
    /* Time at which region 0 began or IBPROF_REGION() was last called. */
    uint64_t open_since_ns;
    /* True after IBPROF_REGION() was called. */
    bool marked;
    /* Time at which counting was switched off; 0 while counting is on. */
    uint64_t off_since_ns;
} *regions;

static void mark(enum ibp_mark_kind kind, uint32_t region, uint64_t now, bool with_totals)
{
    struct ibp_mark *record;

    if (ibp_counters.process->marks_seen++ >= MARKS_MAX) return;
    record = ibp_recording_reserve(IBP_SEGMENT_MARKS);
    if (!record) return;
    memset(record, 0, sizeof *record);
    record->time_ns = now;
    record->kind = kind;
    record->region = region;
    if (with_totals) ibp_counters_total(record);
    ibp_recording_publish(IBP_SEGMENT_MARKS);
}

/* Copy a region's name. If the name is too long for the record, replace its end with a hash of the whole name. */
static void shorten(char *kept, const char *name)
{
    char hash[24];

    ibp_text_copy(kept, IBP_REGION_NAME_BYTES, name);
    if (strlen(name) < IBP_REGION_NAME_BYTES) return;
    snprintf(hash, sizeof hash, "...%016llx", (unsigned long long)ibp_text_hash(IBP_HASH_START, name));
    ibp_text_copy(kept + IBP_REGION_NAME_BYTES - 1 - strlen(hash), sizeof hash, hash);
}

/* Return the number of the region with a name, created if needed. Return `otherwise` if there is no space for a new
 * region. */
static uint32_t find_region(const char *name, uint32_t otherwise)
{
    char kept[IBP_REGION_NAME_BYTES];
    struct ibp_region *record;
    uint64_t bucket;

    shorten(kept, name);
    bucket = ibp_text_hash(IBP_HASH_START, kept) % BUCKETS;

    for (; regions->by_name[bucket]; bucket = (bucket + 1) % BUCKETS) {
        const uint32_t region = regions->by_name[bucket] - 1U;

        if (!strcmp(regions->record[region]->name, kept)) return region;
    }
    record = regions->count < IBP_REGIONS_MAX ? ibp_recording_reserve(IBP_SEGMENT_REGIONS) : NULL;
    if (!record) {
        ibp_counters.process->regions_refused++;
        return otherwise;
    }
    ibp_text_copy(record->name, sizeof record->name, kept);
    ibp_recording_publish(IBP_SEGMENT_REGIONS);
    regions->record[regions->count] = record;
    regions->by_name[bucket] = (uint16_t)++regions->count;
    return regions->count - 1;
}

/* Return the number of the innermost entered region; 0 if no region is entered. */
static uint32_t current_region(void)
{
    const unsigned depth = regions->depth < DEPTH_MAX ? regions->depth : DEPTH_MAX;

    return depth ? regions->entered[depth - 1].region : 0;
}

/* When the region changes, assign all work requests since the last change to the former region. Threads that post do
 * not record the region. */
static void note_transfers(void)
{
    ibp_transfers_enter(regions->off_since_ns ? IBP_REGION_OFF : current_region());
}

static void visit(uint32_t region, uint64_t since, uint64_t now)
{
    struct ibp_region *record = regions->record[region];

    if (!record->first_ns) record->first_ns = since;
    record->last_ns = now;
    record->visits++;
    record->wall_ns += now - since;
}

int ibp_regions_open(void)
{
    const uint64_t now = ibp_clock_ns();

    regions = ibp_memory_map(sizeof *regions);
    if (!regions) return -ENOMEM;
    find_region("main", 0);
    if (!regions->count) return -ENOSPC;
    regions->record[0]->first_ns = now;
    regions->open_since_ns = now;
    mark(IBP_MARK_START, 0, now, false);
    return 0;
}

/* Move all data of region 0 to the region with a name. Return the region's number. */
static uint32_t close_open_region(const char *name, uint64_t now)
{
    const uint32_t region = find_region(name, 0);

    note_transfers();
    if (region) {
        ibp_counters_move(0, region);
        ibp_times_move(0, region);
        ibp_samples_move(0, region);
    }
    if (region) ibp_transfers_move(0, region);
    visit(region, regions->open_since_ns, now);
    regions->open_since_ns = now;
    regions->marked = true;
    mark(IBP_MARK_CLOSE, region, now, true);
    return region;
}

static void leave_region(uint64_t now)
{
    if (regions->depth && --regions->depth < DEPTH_MAX) {
        const uint32_t region = regions->entered[regions->depth].region;

        visit(region, regions->entered[regions->depth].since_ns, now);
        mark(IBP_MARK_END, region, now, false);
        ibp_contexts_enter_region(current_region());
        note_transfers();
    }
}

void ibp_regions_close(void)
{
    const uint64_t now = ibp_clock_ns();

    while (regions->depth) leave_region(now);
    if (regions->off_since_ns) ibp_counters.process->off_ns += now - regions->off_since_ns;
    if (regions->marked)
        ibp_transfers_enter(close_open_region("MPI_Finalize", now));
    else
        visit(0, regions->open_since_ns, now);
    mark(IBP_MARK_STOP, 0, now, true);
}

void ibp_regions_switch(bool on)
{
    const uint64_t now = ibp_clock_ns();

    if (on == !regions->off_since_ns) return;
    if (on) ibp_counters.process->off_ns += now - regions->off_since_ns;
    regions->off_since_ns = on ? 0 : now;
    note_transfers();
    mark(on ? IBP_MARK_ON : IBP_MARK_OFF, 0, now, true);
}

/* -- calls of the program ------------------------------------------------------------------------------------------ */

void ibp_region_close(const char *name)
{
    ibp_periodic_check();
    ibp_lock();
    close_open_region(name, ibp_clock_ns());
    ibp_unlock();
}

void ibp_region_begin(const char *name)
{
    uint64_t now;
    uint32_t region;

    ibp_periodic_check();
    now = ibp_clock_ns();
    ibp_lock();
    region = find_region(name, current_region());
    if (regions->depth < DEPTH_MAX) {
        regions->entered[regions->depth].region = region;
        regions->entered[regions->depth].since_ns = now;
        ibp_contexts_enter_region(region);
    } else {
        ibp_counters.process->regions_refused++;
    }
    regions->depth++;
    note_transfers();
    mark(IBP_MARK_BEGIN, region, now, false);
    ibp_unlock();
}

void ibp_region_end(void)
{
    ibp_periodic_check();
    ibp_lock();
    leave_region(ibp_clock_ns());
    ibp_unlock();
}
