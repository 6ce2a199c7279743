/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/samples.h"
#include "counting/origins.h"
#include "platform/clock.h"
#include "platform/memory.h"
#include "recording/recording.h"

#include <stddef.h>

#define IS_COMMON(field)                                                                                               \
    (offsetof(struct ibp_collective_sample, field) == offsetof(struct ibp_sample, field) &&                            \
     offsetof(struct ibp_message_sample, field) == offsetof(struct ibp_sample, field))
_Static_assert(IS_COMMON(level) && IS_COMMON(score_ns), "all samples have these fields");

#define NOTE_NS UINT64_C(1000000000)

/* The record of a sample. `keeps` and `stream_keeps`: the highest level and the highest stream level (samples.h) that
 * keep the sample. */
struct slot {
    struct ibp_sample *record;
    uint8_t stratum, keeps, stream_keeps;
};

static struct {
    /* The array has `made` slots: first `used` used slots, then free slots. */
    struct slot *slots;
    uint32_t used, made;
    uint32_t held[IBP_SAMPLE_STRATA];
    uint8_t level[IBP_SAMPLE_STRATA];
    /* The stream level (samples.h); 0 for collectives. */
    unsigned stream_level;
} samples[IBP_INSTANCES];

/* Number of records with IBP_SIDE_SOURCE. These records use the space of message samples. */
static uint32_t sources_held;

/* The records with the largest scores among the collectives and messages that the hash does not choose. `lowest`: index
 * of the record with the lowest score. */
static struct {
    struct ibp_sample *records[IBP_LONGEST_MAX];
    uint32_t used, lowest;
} longest[IBP_INSTANCES];

static struct ibp_process *process;
static uint64_t noted_ns;

bool ibp_sampling;
uint64_t ibp_long_ns[IBP_INSTANCES];

/* -- levels -------------------------------------------------------------------------------------------------------- */

/* A level keeps one number in each block of 2^level numbers. Return the half of a block that contains the kept number:
 * 0 for the first half, 1 for the second half. */
static unsigned kept_half(uint64_t stream, uint64_t block, unsigned level)
{
    return (unsigned)(ibp_sample_hash(stream + level, block) >> 63);
}

unsigned ibp_sample_keeps(uint64_t stream, uint64_t number)
{
    unsigned level = 0;

    while (level < IBP_SAMPLE_LEVELS && (number >> level & 1) == kept_half(stream, number >> (level + 1), level + 1))
        level++;
    return level;
}

uint64_t ibp_sample_next(uint64_t stream, uint64_t number, unsigned level)
{
    for (uint64_t block = number >> level;; block++) {
        uint64_t kept = block;

        for (unsigned i = level; i; i--) kept = kept << 1 | kept_half(stream, kept, i);
        if (kept >= number) return kept;
    }
}

/* -- records ------------------------------------------------------------------------------------------------------- */

unsigned ibp_sample_level(enum ibp_instance instance, unsigned stratum)
{
    return samples[instance].level[stratum];
}

static unsigned level_of(enum ibp_instance instance, const struct slot *slot)
{
    return samples[instance].level[slot->stratum] + samples[instance].stream_level;
}

static const enum ibp_segment_kind kinds[] = {IBP_SEGMENT_COLLECTIVE_SAMPLES, IBP_SEGMENT_MESSAGE_SAMPLES};

/* If the space for records with the largest scores is full, find the record with the lowest score. */
static void set_lowest(enum ibp_instance instance)
{
    struct ibp_sample *const *const records = longest[instance].records;
    uint32_t lowest = 0;

    if (longest[instance].used < IBP_LONGEST_MAX) return;
    for (uint32_t i = 1; i < IBP_LONGEST_MAX; i++)
        if (records[i]->score_ns < records[lowest]->score_ns) lowest = i;
    longest[instance].lowest = lowest;
    ibp_long_ns[instance] = records[lowest]->score_ns;
    if (instance == IBP_INSTANCE_COLLECTIVE) process->long_ns = ibp_long_ns[instance];
}

void *ibp_sample_take_long(enum ibp_instance instance, uint64_t score_ns)
{
    struct ibp_sample *record;

    if (score_ns <= ibp_long_ns[instance]) return NULL;
    if (longest[instance].used < IBP_LONGEST_MAX) {
        record = ibp_recording_reserve(kinds[instance]);
        if (!record) return NULL;
        ibp_recording_publish(kinds[instance]);
        longest[instance].records[longest[instance].used++] = record;
    } else {
        record = longest[instance].records[longest[instance].lowest];
        __atomic_store_n(&record->communicator, 0, __ATOMIC_RELEASE);
    }
    record->score_ns = score_ns;
    record->level = IBP_LEVEL_LONG;
    set_lowest(instance);
    return record;
}

/* If the hash no longer chooses a sample, keep the sample only if its score is one of the largest. Return the record
 * that becomes free: `record` if the sample is not kept. */
static struct ibp_sample *keep_long(enum ibp_instance instance, struct ibp_sample *record)
{
    struct ibp_sample *const instead = ibp_sample_take_long(instance, record->score_ns);

    if (!instead) return record;
    for (uint32_t i = 0; i < longest[instance].used; i++)
        if (longest[instance].records[i] == instead) longest[instance].records[i] = record;
    record->level = IBP_LEVEL_LONG;
    return instead;
}

static bool is_kept(enum ibp_instance instance, unsigned stratum, unsigned keeps, unsigned stream_keeps)
{
    return keeps >= samples[instance].level[stratum] && stream_keeps >= samples[instance].stream_level;
}

/* Drop the samples that the present levels exclude, and store the present level in all other samples. */
static void drop(enum ibp_instance instance)
{
    for (uint32_t i = 0; i < samples[instance].used;) {
        struct slot *const slot = &samples[instance].slots[i];
        struct slot dropped = *slot;

        slot->record->level = level_of(instance, slot);
        if (slot->record->level > process->level[instance]) process->level[instance] = slot->record->level;
        if (is_kept(instance, slot->stratum, slot->keeps, slot->stream_keeps)) {
            i++;
            continue;
        }
        dropped.record = keep_long(instance, slot->record);
        __atomic_store_n(&dropped.record->communicator, 0, __ATOMIC_RELEASE);
        samples[instance].held[slot->stratum]--;
        *slot = samples[instance].slots[--samples[instance].used];
        samples[instance].slots[samples[instance].used] = dropped;
    }
}

/* Raise the level of the stratum with the most samples until a slot is free. Return false if no slot is free at the
 * maximum level. */
static bool make_space(enum ibp_instance instance)
{
    unsigned largest = 0;

    for (unsigned round = 0; samples[instance].used == samples[instance].made; round++) {
        for (unsigned i = 0; i < IBP_SAMPLE_STRATA; i++)
            if (samples[instance].held[i] > samples[instance].held[largest]) largest = i;
        if (samples[instance].level[largest] == IBP_SAMPLE_LEVELS) return false;
        samples[instance].level[largest]++;
        drop(instance);
    }
    return true;
}

/* Add a slot with a new record. Return false if the maximum number of samples is reached, or if the recording is
 * full. */
static bool add_slot(enum ibp_instance instance)
{
    const uint32_t others = instance == IBP_INSTANCE_MESSAGE ? sources_held : 0;
    struct ibp_sample *const record =
        samples[instance].made + others < IBP_SAMPLES_MAX ? ibp_recording_reserve(kinds[instance]) : NULL;

    if (!record) return false;
    ibp_recording_publish(kinds[instance]);
    samples[instance].slots[samples[instance].made++].record = record;
    return true;
}

void *ibp_sample_take(enum ibp_instance instance, unsigned stratum, unsigned keeps, unsigned stream_keeps)
{
    struct slot *slot;

    if (!samples[instance].slots || !is_kept(instance, stratum, keeps, stream_keeps)) return NULL;
    if (samples[instance].used == samples[instance].made && !add_slot(instance) && !make_space(instance)) return NULL;
    if (!is_kept(instance, stratum, keeps, stream_keeps)) return NULL;
    slot = &samples[instance].slots[samples[instance].used++];
    slot->stratum = (uint8_t)stratum;
    slot->keeps = (uint8_t)keeps;
    slot->stream_keeps = (uint8_t)stream_keeps;
    slot->record->level = level_of(instance, slot);
    samples[instance].held[stratum]++;
    return slot->record;
}

void ibp_samples_add_sources(uint64_t communicator, uint32_t origin, const uint32_t *sources, uint32_t count)
{
    const bool has_space = samples[IBP_INSTANCE_MESSAGE].slots && sources_held + count <= IBP_SOURCES_MAX;

    for (uint32_t i = 0; i < count; i++) {
        struct ibp_message_sample *record;

        if (!has_space || (samples[IBP_INSTANCE_MESSAGE].used == samples[IBP_INSTANCE_MESSAGE].made &&
                           !add_slot(IBP_INSTANCE_MESSAGE) && !make_space(IBP_INSTANCE_MESSAGE))) {
            ibp_sample_refuse(IBP_INSTANCE_COLLECTIVE, IBP_UNSAMPLED_FULL);
            return;
        }
        record = (void *)samples[IBP_INSTANCE_MESSAGE].slots[--samples[IBP_INSTANCE_MESSAGE].made].record;
        sources_held++;
        *record = (struct ibp_message_sample){
            .origin = origin,
            .end_origin = origin,
            .side = IBP_SIDE_SOURCE,
            .peer = sources[i],
            .number = count,
            .bytes = IBP_BYTES_UNKNOWN,
        };
        __atomic_store_n(&record->communicator, communicator, __ATOMIC_RELEASE);
    }
}

void ibp_samples_raise_streams(unsigned level)
{
    samples[IBP_INSTANCE_MESSAGE].stream_level = level;
    drop(IBP_INSTANCE_MESSAGE);
}

static void move(struct ibp_sample *record, uint32_t from, uint32_t into)
{
    record->origin = ibp_origin_record_moved(record->origin, from, into);
    record->end_origin = ibp_origin_record_moved(record->end_origin, from, into);
}

void ibp_samples_move(uint32_t from, uint32_t into)
{
    for (unsigned instance = 0; ibp_sampling && instance < IBP_INSTANCES; instance++) {
        for (uint32_t i = 0; i < samples[instance].used; i++) move(samples[instance].slots[i].record, from, into);
        for (uint32_t i = 0; i < longest[instance].used; i++) move(longest[instance].records[i], from, into);
    }
}

/* -- numbers of collectives and messages, readings of clocks ------------------------------------------------------- */

void ibp_sample_count(enum ibp_instance instance, uint64_t count)
{
    process->instances[instance] += count;
}

void ibp_sample_refuse(enum ibp_instance instance, enum ibp_unsampled reason)
{
    process->unsampled[instance][reason]++;
}

static void note_clocks(unsigned place)
{
    noted_ns = ibp_clock_monotonic_ns();
    process->sample_clock_ns[place] = noted_ns;
    process->sample_unix_ns[place] = ibp_clock_unix(noted_ns);
}

void ibp_samples_note_clock(uint64_t now_ns)
{
    if (now_ns - noted_ns > NOTE_NS) note_clocks(1);
}

void ibp_samples_begin(struct ibp_process *of)
{
    process = of;
    for (unsigned instance = 0; instance < IBP_INSTANCES; instance++)
        if (!samples[instance].slots)
            samples[instance].slots = ibp_memory_map(IBP_SAMPLES_MAX * sizeof *samples[instance].slots);
    note_clocks(0);
    note_clocks(1);
    ibp_sampling = true;
}

void ibp_samples_end(void)
{
    if (ibp_sampling) note_clocks(1);
    ibp_sampling = false;
}
