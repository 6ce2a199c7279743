/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/counters.h"
#include "counting/partners.h"
#include "libmpi/job_line.h"
#include "platform/memory.h"
#include "platform/text.h"
#include "recording/process_state.h"
#include "recording/recording.h"

#include <errno.h>
#include <string.h>

#define FIRST_SLOTS 1024 /* a power of two */

_Static_assert(IBP_OPERATIONS <= IBP_KEY_OPERATION_MASK, "operations fit a key");
_Static_assert((sizeof(struct ibp_slot) & (sizeof(struct ibp_slot) - 1)) == 0, "offsets of slots can be masked");

struct ibp_counters ibp_counters;

static uint64_t waste_bins[IBP_SIZE_BINS];

static enum ibp_direction key_direction(uint64_t key)
{
    return (enum ibp_direction)((key & 3) - 1);
}

static enum ibp_kind key_kind(uint64_t key)
{
    return (enum ibp_kind)(key >> 2 & 3);
}

static uint32_t key_peer(uint64_t key)
{
    return (uint32_t)(key >> 28);
}

static uint64_t slot_count(void)
{
    return ibp_counters.mask / sizeof(struct ibp_slot) + 1;
}

/* Return the mask that reduces a hash to the offset of a slot in bytes. */
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
    ibp_origins_enter(0);
    return 0;
}

void ibp_counters_note_full(void)
{
    static const char *const reasons[] = {
        [IBP_FULL_SPACE] = "the recording has no space for more",
        [IBP_FULL_MOVED] = "the recording was removed or moved, or the program changed its root",
        [IBP_FULL_CLOSED] = "the recording cannot be opened again",
        [IBP_FULL_USER] = "the program changed to a user who may not write to the recording",
    };
    const enum ibp_full why = ibp_recording_why_full();
    char reason[400]; /* short, because threads may have small stacks */

    if (!ibp_is_active() || why >= sizeof reasons / sizeof *reasons) return;
    ibp_text_copy(reason, sizeof reason, reasons[why ? why : IBP_FULL_SPACE]);
    if (why > IBP_FULL_SPACE) {
        ibp_text_append(reason, sizeof reason, " (");
        ibp_text_append(reason, sizeof reason, ibp_recording_path());
        ibp_text_append(reason, sizeof reason, ")");
    }
    ibp_say_once_a_job(reason, "traffic to further peers is summed into one total, which every report shows");
}

static struct ibp_slot *probe(struct ibp_slot *slots, uint64_t mask, uint64_t key)
{
    uint64_t place = ibp_key_place(key, mask) / sizeof *slots;
    const uint64_t last = mask / sizeof *slots;

    while (slots[place].key && slots[place].key != key) place = (place + 1) & last;
    return &slots[place];
}

/* Double the hash table if it is half full. If memory is exhausted, the table does not change. */
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

/* Return the size bins of a counter. Counters with the same origin, kind and direction share their bins. In the key of
 * the bins, the peer field contains the direction, and the direction field is 0. */
static uint64_t *find_bins(uint64_t key)
{
    enum { BINS_DIRECTION = -1 };
    const enum ibp_direction direction = key_direction(key);
    uint64_t bins_key;
    struct ibp_slot *slot;
    struct ibp_sizes *sizes;

    if (direction == IBP_DIRECTION_RECEIVED) return waste_bins;
    bins_key = IBP_SLOT_KEY(ibp_key_origin(key), key_kind(key), BINS_DIRECTION, direction);
    slot = probe(ibp_counters.slots, ibp_counters.mask, bins_key);
    if (slot->key) return slot->bins;
    sizes = ibp_recording_reserve(IBP_SEGMENT_SIZES);
    if (!sizes) return waste_bins;
    sizes->origin = ibp_origin_record(ibp_key_origin(key));
    sizes->kind = key_kind(key);
    sizes->direction = direction;
    ibp_recording_publish(IBP_SEGMENT_SIZES);
    *slot = (struct ibp_slot){.key = bins_key, .bins = sizes->messages};
    ibp_counters.used++;
    return sizes->messages;
}

static uint64_t *record_counter(uint64_t key, uint32_t origin)
{
    struct ibp_counter *counter = ibp_recording_reserve(IBP_SEGMENT_COUNTERS);

    if (!counter) return NULL;
    counter->origin = origin;
    counter->kind = key_kind(key);
    counter->direction = key_direction(key);
    counter->peer = key_peer(key);
    counter->source = (uint8_t)ibp_counters.source;
    ibp_recording_publish(IBP_SEGMENT_COUNTERS);
    return &counter->bytes;
}

static uint64_t *record_demand(uint64_t key, uint32_t origin)
{
    struct ibp_demand *demand = ibp_recording_reserve(IBP_SEGMENT_DEMANDS);

    if (!demand) return NULL;
    demand->origin = origin;
    demand->partner = ibp_partner_of(key_peer(key));
    ibp_recording_publish(IBP_SEGMENT_DEMANDS);
    return &demand->bytes;
}

/* Return the counter for keys that have no record. Sent and fetched user data are counted as lost. All other bytes are
 * discarded, for example received bytes, which the sender counts too. */
static uint64_t *amount_without_record(uint64_t key)
{
    static uint64_t waste_amount[2];

    if (key_kind(key) != IBP_KIND_USER || key_direction(key) == IBP_DIRECTION_RECEIVED) return waste_amount;
    return &ibp_counters.process->lost_bytes;
}

/* Create a slot and its record. If the recording is full, the slot points to the counter for keys without a record. */
static struct ibp_slot make_slot(uint64_t key)
{
    const bool is_demand = key_kind(key) == IBP_KEY_DEMAND;
    const uint32_t origin = ibp_origin_record(ibp_key_origin(key));
    struct ibp_slot made = {.key = key, .bins = waste_bins};

    if (origin != UINT32_MAX) {
        if (!is_demand) made.bins = find_bins(key);
        made.amount = is_demand ? record_demand(key, origin) : record_counter(key, origin);
    }
    if (made.amount)
        made.ordinal = ibp_recording_used(is_demand ? IBP_SEGMENT_DEMANDS : IBP_SEGMENT_COUNTERS);
    else
        made.amount = amount_without_record(key);
    return made;
}

struct ibp_slot *ibp_counters_find(uint64_t key)
{
    struct ibp_slot *slot = probe(ibp_counters.slots, ibp_counters.mask, key);
    struct ibp_slot made;

    if (slot->key) return slot;
    if (ibp_counters.used + 8 > slot_count()) { /* no memory for a larger table: all new keys share one slot */
        static struct ibp_slot rest;

        rest = (struct ibp_slot){.amount = amount_without_record(key), .bins = waste_bins};
        return &rest;
    }
    grow();
    made = make_slot(key);
    if (!made.ordinal) ibp_counters_note_full();
    slot = probe(ibp_counters.slots, ibp_counters.mask, key);
    *slot = made;
    ibp_counters.used++;
    return slot;
}

/* Move the bytes and messages of a counter to another counter. If the process is killed during the move, readers
 * complete the move from the redo log (`redo_*`). */
static void move_amount(struct ibp_slot *from, struct ibp_slot *into)
{
    struct ibp_process *process = ibp_counters.process;
    const uint64_t bytes = into->amount[0] + from->amount[0];
    const uint64_t messages = into->amount[1] + from->amount[1];

    process->redo_kind = key_kind(into->key) == IBP_KEY_DEMAND ? IBP_SEGMENT_DEMANDS : IBP_SEGMENT_COUNTERS;
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
    /* Iterate by index, because ibp_counters_find may move the table. */
    for (uint64_t i = 0; i < slot_count(); i++) {
        const struct ibp_slot slot = ibp_counters.slots[i];
        const uint64_t mask = ibp_counters.mask;
        struct ibp_slot source = slot, *target;

        if (!slot.ordinal || !(slot.amount[0] | slot.amount[1]) || ibp_origin_region(ibp_key_origin(slot.key)) != from)
            continue;
        target = ibp_counters_find(IBP_SLOT_KEY(ibp_origin_moved(ibp_key_origin(slot.key), into), key_kind(slot.key),
                                                key_direction(slot.key), key_peer(slot.key)));
        if (target->ordinal) {
            move_amount(&source, target);
            move_bins(source.bins, target->bins);
        }
        if (ibp_counters.mask != mask) i = UINT64_MAX; /* a new table: begin again; moved counters are 0 */
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

        if (!slot->ordinal || key_kind(slot->key) != IBP_KIND_USER ||
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

        if (!slot->ordinal || key_kind(slot->key) != IBP_KIND_USER) continue;
        if (key_direction(slot->key) == IBP_DIRECTION_SENT) {
            mark->sent_bytes += slot->amount[0];
            mark->sent_messages += slot->amount[1];
        } else {
            mark->received_bytes += slot->amount[0];
            mark->received_messages += slot->amount[1];
        }
    }
}
