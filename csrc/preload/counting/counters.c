/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/counters.h"
#include "libmpi/job_line.h"
#include "platform/memory.h"
#include "recording/process_state.h"
#include "recording/recording.h"

#include <errno.h>
#include <string.h>

#define FIRST_SLOTS 1024 /* a power of two */

_Static_assert(IBP_OPERATIONS <= IBP_KEY_OPERATION_MASK, "operations fit a key");
_Static_assert(IBP_REGIONS_MAX <= 1 << 14, "regions fit a key");
_Static_assert((sizeof(struct ibp_slot) & (sizeof(struct ibp_slot) - 1)) == 0, "offsets of slots can be masked");

struct ibp_counters ibp_counters;

static uint64_t waste_bins[IBP_SIZE_BINS];

static unsigned key_operation(uint64_t key)
{
    return (unsigned)key & IBP_KEY_OPERATION_MASK;
}

static enum ibp_direction key_direction(uint64_t key)
{
    return (enum ibp_direction)((key >> 10) & 3);
}

static uint32_t key_region(uint64_t key)
{
    return (uint32_t)(key >> 14) & 0x3fff;
}

static uint32_t key_peer(uint64_t key)
{
    return (uint32_t)(key >> 28);
}

static uint64_t slot_count(void)
{
    return ibp_counters.mask / sizeof(struct ibp_slot) + 1;
}

/* Return the mask of an offset in bytes: multiples of a slot's size. */
static uint64_t mask_of(uint64_t slots)
{
    return (slots - 1) * sizeof(struct ibp_slot);
}

static size_t slots_bytes(uint64_t slots)
{
    return (slots + 1) * sizeof(struct ibp_slot);
}

int ibp_counters_open(struct ibp_process *process, enum ibp_source source)
{
    struct ibp_slot *slots = ibp_memory_map(slots_bytes(FIRST_SLOTS));

    if (!slots) return -ENOMEM;
    ibp_counters = (struct ibp_counters){
        .slots = slots,
        .mask = mask_of(FIRST_SLOTS),
        .source = source,
        .process = process,
    };
    ibp_counters_enter(0);
    return 0;
}

void ibp_counters_enter(uint32_t region)
{
    ibp_counters.region_key = IBP_KEY_REGION(region);
}

void ibp_counters_note_full(void)
{
    if (ibp_is_active())
        ibp_say_once_a_job("the recording has no space for more",
                           "traffic to further peers is summed into one total, which every report shows");
}

static struct ibp_slot *probe(struct ibp_slot *slots, uint64_t mask, uint64_t key)
{
    uint64_t place = ibp_key_place(key, mask) / sizeof *slots;
    const uint64_t last = mask / sizeof *slots;

    while (slots[place].key && slots[place].key != key) place = (place + 1) & last;
    return &slots[place];
}

/* Double the index when it is half full; without memory for that, use the present one further. */
static void grow(void)
{
    const uint64_t slots = slot_count();
    struct ibp_slot *larger;

    if (ibp_counters.used * 2 < slots) return;
    larger = ibp_memory_map(slots_bytes(2 * slots));
    if (!larger) return;
    for (uint64_t i = 0; i < slots; i++)
        if (ibp_counters.slots[i].key)
            *probe(larger, mask_of(2 * slots), ibp_counters.slots[i].key) = ibp_counters.slots[i];
    ibp_memory_unmap(ibp_counters.slots, slots_bytes(slots));
    ibp_counters.slots = larger;
    ibp_counters.mask = mask_of(2 * slots);
}

/* Return the bins of a (region, operation). All its peers share them, so their key has peer 0 and a direction that
 * counters do not use. */
static uint64_t *find_bins(uint64_t key)
{
    enum { BINS_DIRECTION = 3 };
    const enum ibp_direction direction = key_direction(key);
    uint64_t bins_key;
    struct ibp_slot *slot;
    struct ibp_sizes *sizes;

    if (direction == IBP_DIRECTION_RECEIVED) return waste_bins;
    bins_key = IBP_KEY_OF(key_operation(key), ibp_key_kind(key), BINS_DIRECTION) | IBP_KEY_REGION(key_region(key)) |
               IBP_KEY_PEER(direction);
    slot = probe(ibp_counters.slots, ibp_counters.mask, bins_key);
    if (slot->key) return slot->bins;
    sizes = ibp_recording_reserve(IBP_SEGMENT_SIZES);
    if (!sizes) return waste_bins;
    sizes->region = key_region(key);
    sizes->operation = (uint16_t)key_operation(key);
    sizes->kind = ibp_key_kind(key);
    sizes->direction = direction;
    ibp_recording_publish(IBP_SEGMENT_SIZES);
    *slot = (struct ibp_slot){.key = bins_key, .bins = sizes->messages};
    ibp_counters.used++;
    return sizes->messages;
}

struct ibp_slot *ibp_counters_find(uint64_t key)
{
    struct ibp_slot *slot = probe(ibp_counters.slots, ibp_counters.mask, key);
    struct ibp_slot made = {.key = key, .amount = &ibp_counters.process->lost_bytes};
    struct ibp_counter *counter;

    if (slot->key) return slot;
    if (ibp_counters.used + 8 > slot_count()) { /* no memory for a larger index: one slot takes the rest */
        static struct ibp_slot rest;

        rest = (struct ibp_slot){.amount = made.amount, .bins = waste_bins};
        return &rest;
    }
    grow();
    made.bins = find_bins(key);
    counter = ibp_recording_reserve(IBP_SEGMENT_COUNTERS);
    if (counter) {
        counter->region = key_region(key);
        counter->operation = (uint16_t)key_operation(key);
        counter->kind = ibp_key_kind(key);
        counter->direction = key_direction(key);
        counter->peer = key_peer(key);
        counter->source = ibp_counters.source;
        ibp_recording_publish(IBP_SEGMENT_COUNTERS);
        made.amount = &counter->bytes;
        made.ordinal = ibp_recording_used(IBP_SEGMENT_COUNTERS);
    } else {
        ibp_counters_note_full();
    }
    slot = probe(ibp_counters.slots, ibp_counters.mask, key);
    *slot = made;
    ibp_counters.used++;
    return slot;
}

/* Move one counter. If the process is killed meanwhile, a redo log remains, so that no bytes are counted twice or
 * lost. */
static void move_amount(struct ibp_slot *from, struct ibp_slot *into)
{
    struct ibp_process *process = ibp_counters.process;
    const uint64_t bytes = into->amount[0] + from->amount[0];
    const uint64_t messages = into->amount[1] + from->amount[1];

    process->redo_into = (uint32_t)into->ordinal;
    process->redo_bytes = bytes;
    process->redo_messages = messages;
    __atomic_store_n(&process->redo_from, (uint32_t)from->ordinal, __ATOMIC_RELEASE);
    __atomic_store_n(&into->amount[0], bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&into->amount[1], messages, __ATOMIC_RELEASE);
    __atomic_store_n(&from->amount[0], 0, __ATOMIC_RELEASE);
    __atomic_store_n(&from->amount[1], 0, __ATOMIC_RELEASE);
    __atomic_store_n(&process->redo_from, 0, __ATOMIC_RELEASE);
}

static void move_bins(uint64_t *from, uint64_t *into)
{
    if (from == into) return;
    for (unsigned bin = 0; bin < IBP_SIZE_BINS; bin++) {
        into[bin] += from[bin];
        from[bin] = 0;
    }
}

void ibp_counters_move(uint32_t from, uint32_t into)
{
    /* Making a slot may move the index, so places are visited by number. */
    for (uint64_t i = 0; i < slot_count(); i++) {
        const struct ibp_slot slot = ibp_counters.slots[i];
        const uint64_t mask = ibp_counters.mask;
        struct ibp_slot source = slot, *target;

        if (!slot.key || key_region(slot.key) != from || !slot.ordinal || !(slot.amount[0] | slot.amount[1])) continue;
        target = ibp_counters_find((slot.key & ~IBP_KEY_REGION(0x3fff)) | IBP_KEY_REGION(into));
        if (target->ordinal) {
            move_amount(&source, target);
            move_bins(source.bins, target->bins);
        }
        if (ibp_counters.mask != mask) i = UINT64_MAX; /* start over: what was moved is empty now */
    }
}

void ibp_counters_clear(void)
{
    for (uint64_t i = 0; i < slot_count(); i++) {
        const struct ibp_slot *slot = &ibp_counters.slots[i];

        if (!slot->ordinal) continue;
        slot->amount[0] = slot->amount[1] = 0;
        memset(slot->bins, 0, IBP_SIZE_BINS * sizeof *slot->bins);
    }
}

static uint32_t group_of(uint32_t peer, uint32_t group_ranks)
{
    const uint32_t last = IBP_SNAPSHOT_GROUPS - 1;
    const bool by_address = peer >= IBP_PEER_ADDRESS;
    const uint32_t group = group_ranks ? peer / group_ranks : peer - IBP_PEER_ADDRESS;

    return by_address == !group_ranks && group < last ? group : last;
}

void ibp_counters_by_group(uint32_t group_ranks, uint64_t *bytes, uint64_t *messages)
{
    for (uint64_t i = 0; i < slot_count(); i++) {
        const struct ibp_slot *slot = &ibp_counters.slots[i];
        uint32_t group;

        if (!slot->ordinal || ibp_key_kind(slot->key) != IBP_KIND_USER ||
            key_direction(slot->key) == IBP_DIRECTION_RECEIVED)
            continue;
        group = group_of(key_peer(slot->key), group_ranks);
        bytes[group] += slot->amount[0];
        messages[group] += slot->amount[1];
    }
}

void ibp_counters_total(struct ibp_mark *mark)
{
    for (uint64_t i = 0; i < slot_count(); i++) {
        const struct ibp_slot *slot = &ibp_counters.slots[i];

        if (!slot->ordinal || ibp_key_kind(slot->key) != IBP_KIND_USER) continue;
        if (key_direction(slot->key) == IBP_DIRECTION_SENT) {
            mark->sent_bytes += slot->amount[0];
            mark->sent_messages += slot->amount[1];
        } else {
            mark->received_bytes += slot->amount[0];
            mark->received_messages += slot->amount[1];
        }
    }
}
