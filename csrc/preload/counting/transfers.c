/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/transfers.h"
#include "counting/verbs_lock.h"
#include "platform/memory.h"
#include "recording/process_state.h"
#include "recording/recording.h"

#include <stdbool.h>
#include <string.h>

/* The sums of all work requests with one opcode between a pair of ports. */
struct group {
    uint32_t pair;
    uint32_t opcode;
    /* Bytes and messages that are already assigned to regions. */
    uint64_t given[2];
    /* Bytes and messages that all threads have posted; valid only in ibp_transfers_enter. */
    uint64_t total[2];
};

/* A `struct ibp_transfer` of the recording: the work requests of a `struct group` that one writer (thread) posted, or
 * that belong to one region. */
struct record {
    uint64_t key;
    uint64_t *amount;
    uint32_t group;
};

struct array {
    void *items;
    uint64_t count, capacity;
};

static struct {
    struct ibp_process *process;
    struct array pairs;   /* struct ibp_pair *, indexed by the pair's number */
    struct array groups;  /* struct group */
    struct array written; /* struct record, one for each group and writer */
    struct array given;   /* struct record, one for each group and region */
    /* hash table that finds the items of the four arrays */
    struct array index;
    /* The open region. */
    uint32_t region;
} transfers;

/* -- arrays that grow ---------------------------------------------------------------------------------------------- */

/* Append an item of zeros and return it; NULL if memory is exhausted. */
static void *append(struct array *array, size_t item_bytes)
{
    if (array->count == array->capacity) {
        const uint64_t capacity = array->capacity ? 2 * array->capacity : 64;
        void *larger = ibp_memory_map(capacity * item_bytes);

        if (!larger) return NULL;
        if (array->items) memcpy(larger, array->items, array->count * item_bytes);
        ibp_memory_unmap(array->items, array->capacity * item_bytes);
        array->items = larger;
        array->capacity = capacity;
    }
    return (char *)array->items + array->count++ * item_bytes;
}

/* -- the index ----------------------------------------------------------------------------------------------------- */

enum table { PAIRS, GROUPS, WRITTEN, GIVEN };

struct entry {
    uint64_t hash;
    uint32_t table;
    /* Index of the item in its array, plus 1; 0 if the entry is free. */
    uint32_t number;
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of_pair(const struct ibp_pair *pair)
{
    uint64_t words[sizeof *pair / sizeof(uint64_t)], hash = PAIRS;

    memcpy(words, pair, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) hash = mix(hash, words[i]);
    return hash;
}

/* Return the key of an item: of (pair, opcode), (group, writer) or (group, region). */
static uint64_t key_of(uint32_t first, uint32_t second)
{
    return (uint64_t)first << 32 | second;
}

static bool is_item(const struct entry *entry, enum table table, uint64_t key, const struct ibp_pair *pair)
{
    const uint32_t item = entry->number - 1;
    const struct group *group;

    if (entry->table != table) return false;
    switch (table) {
    case PAIRS:
        return !memcmp(((struct ibp_pair **)transfers.pairs.items)[item], pair, sizeof *pair);
    case GROUPS:
        group = (struct group *)transfers.groups.items + item;
        return key_of(group->pair, group->opcode) == key;
    case WRITTEN:
        return ((struct record *)transfers.written.items)[item].key == key;
    default:
        return ((struct record *)transfers.given.items)[item].key == key;
    }
}

static bool grow_index(void)
{
    const uint64_t capacity = transfers.index.capacity ? 2 * transfers.index.capacity : 256;
    struct entry *larger, *old = transfers.index.items;

    if (2 * transfers.index.count < transfers.index.capacity) return true;
    larger = ibp_memory_map(capacity * sizeof *larger);
    if (!larger) return transfers.index.count + 1 < transfers.index.capacity;
    for (uint64_t i = 0; i < transfers.index.capacity; i++) {
        uint64_t place = old[i].hash & (capacity - 1);

        if (!old[i].number) continue;
        while (larger[place].number) place = (place + 1) & (capacity - 1);
        larger[place] = old[i];
    }
    ibp_memory_unmap(old, transfers.index.capacity * sizeof *old);
    transfers.index.items = larger;
    transfers.index.capacity = capacity;
    return true;
}

/* Return the entry of an item, or a free entry for the item; NULL if memory is exhausted. */
static struct entry *find(enum table table, uint64_t key, const struct ibp_pair *pair)
{
    const uint64_t hash = pair ? hash_of_pair(pair) : mix(table, key);
    struct entry *entries;

    if (!grow_index()) return NULL;
    entries = transfers.index.items;
    for (uint64_t place = hash;; place++) {
        struct entry *entry = &entries[place & (transfers.index.capacity - 1)];

        if (!entry->number) {
            entry->hash = hash;
            entry->table = table;
            return entry;
        }
        if (entry->hash == hash && is_item(entry, table, key, pair)) return entry;
    }
}

/* Add the last item of an array to the index. */
static void enter(struct entry *entry, const struct array *array)
{
    entry->number = (uint32_t)array->count;
    transfers.index.count++;
}

/* -- pairs, groups and records ------------------------------------------------------------------------------------- */

static uint32_t unseen; /* sum of the arguments of ibp_transfers_note_unseen */

void ibp_transfers_open(struct ibp_process *process)
{
    transfers.process = process;
    process->queue_pairs_unseen = __atomic_load_n(&unseen, __ATOMIC_RELAXED);
}

void ibp_transfers_note_unseen(int queue_pairs)
{
    const uint32_t now = __atomic_add_fetch(&unseen, (uint32_t)queue_pairs, __ATOMIC_RELAXED);

    if (ibp_process_state->recorded) __atomic_store_n(&transfers.process->queue_pairs_unseen, now, __ATOMIC_RELAXED);
}

uint32_t ibp_transfers_pair(const struct ibp_pair *pair)
{
    struct entry *entry = find(PAIRS, 0, pair);
    struct ibp_pair *record, **slot;

    if (!entry) return IBP_NO_PAIR;
    if (entry->number) return entry->number - 1;
    record = ibp_recording_reserve(IBP_SEGMENT_PAIRS);
    slot = record ? append(&transfers.pairs, sizeof(struct ibp_pair *)) : NULL;
    if (!slot) return IBP_NO_PAIR;
    *record = *pair;
    *slot = record;
    ibp_recording_publish(IBP_SEGMENT_PAIRS);
    enter(entry, &transfers.pairs);
    return entry->number - 1;
}

static struct group *find_group(uint32_t pair, enum ibp_opcode opcode)
{
    struct entry *entry = find(GROUPS, key_of(pair, opcode), NULL);
    struct group *group;

    if (!entry) return NULL;
    if (entry->number) return (struct group *)transfers.groups.items + entry->number - 1;
    group = append(&transfers.groups, sizeof *group);
    if (!group) return NULL;
    group->pair = pair;
    group->opcode = opcode;
    enter(entry, &transfers.groups);
    return group;
}

static uint64_t *find_record(enum table table, const struct group *group, uint32_t writer, uint32_t region)
{
    struct array *array = table == WRITTEN ? &transfers.written : &transfers.given;
    const uint32_t number = (uint32_t)(group - (struct group *)transfers.groups.items);
    const uint64_t key = key_of(number, table == WRITTEN ? writer : region);
    struct entry *entry = find(table, key, NULL);
    struct ibp_transfer *transfer;
    struct record *record;

    if (!entry) return NULL;
    if (entry->number) return ((struct record *)array->items)[entry->number - 1].amount;
    transfer = ibp_recording_reserve(IBP_SEGMENT_TRANSFERS);
    record = transfer ? append(array, sizeof *record) : NULL;
    if (!record) return NULL;
    *transfer = (struct ibp_transfer){.pair = group->pair, .region = region, .opcode = group->opcode, .writer = writer};
    *record = (struct record){.key = key, .amount = &transfer->bytes, .group = number};
    ibp_recording_publish(IBP_SEGMENT_TRANSFERS);
    enter(entry, array);
    return record->amount;
}

uint64_t *ibp_transfers_amount(uint32_t pair, enum ibp_opcode opcode, uint32_t writer)
{
    const struct group *group = pair == IBP_NO_PAIR ? NULL : find_group(pair, opcode);
    uint64_t *amount = group ? find_record(WRITTEN, group, writer, IBP_REGION_ALL) : NULL;

    return amount ? amount : &transfers.process->transfers_lost_bytes;
}

/* -- regions ------------------------------------------------------------------------------------------------------- */

_Static_assert(offsetof(struct ibp_transfer, messages) == offsetof(struct ibp_transfer, bytes) + 8, "an amount is two");

static void add_up(void)
{
    struct group *groups = transfers.groups.items;
    const struct record *records = transfers.written.items;

    for (uint64_t i = 0; i < transfers.groups.count; i++) groups[i].total[0] = groups[i].total[1] = 0;
    for (uint64_t i = 0; i < transfers.written.count; i++) {
        groups[records[i].group].total[0] += __atomic_load_n(&records[i].amount[0], __ATOMIC_RELAXED);
        groups[records[i].group].total[1] += __atomic_load_n(&records[i].amount[1], __ATOMIC_RELAXED);
    }
}

void ibp_transfers_enter(uint32_t region)
{
    struct group *groups;

    if (!transfers.process) return;
    ibp_verbs_lock();
    add_up();
    groups = transfers.groups.items;
    for (uint64_t i = 0; i < transfers.groups.count; i++) {
        struct group *group = &groups[i];
        uint64_t *amount;

        if (group->total[0] == group->given[0] && group->total[1] == group->given[1]) continue;
        amount = find_record(GIVEN, group, 0, transfers.region);
        if (!amount) continue; /* no space for a record: readers assign the amount to the open region */
        for (int j = 0; j < 2; j++) {
            amount[j] += group->total[j] - group->given[j];
            group->given[j] = group->total[j];
        }
    }
    transfers.region = region;
    transfers.process->transfers_region = region;
    ibp_verbs_unlock();
}

void ibp_transfers_move(uint32_t from, uint32_t into)
{
    if (!transfers.process || from == into) return;
    ibp_verbs_lock();
    for (uint64_t i = 0; i < transfers.given.count; i++) {
        const struct record record = ((struct record *)transfers.given.items)[i];
        uint64_t *amount, moved[2] = {record.amount[0], record.amount[1]};

        if ((uint32_t)record.key != from || !(moved[0] | moved[1])) continue;
        amount = find_record(GIVEN, (struct group *)transfers.groups.items + record.group, 0, into);
        if (!amount) continue;
        /* Set the record of region `from` to 0 before the addition. If the process is killed before the addition,
         * readers count the bytes for the open region. */
        record.amount[0] = record.amount[1] = 0;
        amount[0] += moved[0];
        amount[1] += moved[1];
    }
    ibp_verbs_unlock();
}
