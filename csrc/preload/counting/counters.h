/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Counting: the only code that runs for every message.
 *
 * The records lie in the recording, where they never move; an index in private memory finds the one of a key in one probe.
 */
#ifndef IBPROF_COUNTING_COUNTERS_H
#define IBPROF_COUNTING_COUNTERS_H

#include "counting/periodic.h"
#include "libmpi/lock.h"
#include "platform/system.h"
#include "recording/operations.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_REGIONS_MAX 8192

/* Where one key's bytes are added up. `bins` counts messages by size; it is a bin of waste where that is not recorded. */
struct ibp_slot {
    /* 0 is a free slot. */
    uint64_t key;
    /* Bytes, messages. */
    uint64_t *amount;
    uint64_t *bins;
    /* Number of the counter in the recording, from 1; 0 when there was no room for it. */
    uint64_t ordinal;
};

struct ibp_counters {
    /* A power of two of them, and a free one behind the last. */
    struct ibp_slot *slots;
    /* Of the offset of a slot in bytes. */
    uint64_t mask;
    /* Of the region that bytes are counted in now. */
    uint64_t region_key;
    uint64_t used;
    enum ibp_source source;
    struct ibp_process *process;
};

extern IBP_INTERNAL struct ibp_counters ibp_counters;

/* Makes the index. Returns 0 or a negative errno. */
int ibp_counters_open(struct ibp_process *process, enum ibp_source source);

/* Finds or makes the slot of a key that is not where it hashes to. Never NULL. */
struct ibp_slot *ibp_counters_find(uint64_t key);

/* Adds what was counted in one region to another and leaves the first one empty. */
void ibp_counters_move(uint32_t from, uint32_t into);

/* Takes back all that was counted. */
void ibp_counters_clear(void);

/* Adds user data that was sent and fetched to its peer's group, as ibp_snapshot has them. */
void ibp_counters_by_group(uint32_t group_ranks, uint64_t *bytes, uint64_t *messages);

/* Says that the recording has no space for more counters, once a job. */
void ibp_counters_note_full(void);

/* Totals of user data over all regions, for a mark. */
void ibp_counters_total(struct ibp_mark *mark);

/* A key names a counter: peer 32 bits, region 14, kind 2, direction 2, operation 10, which is never 0. Whatever is small comes
 * last, so that multiplying spreads it over the bits that a slot is chosen by. The operation alone is that of user data sent. */
#define IBP_KEY_OPERATION_MASK 0x3ff
#define IBP_KEY_OF(operation, kind, direction) ((uint64_t)(kind) << 12 | (uint64_t)(direction) << 10 | (operation))
#define IBP_KEY_REGION(region) ((uint64_t)(region) << 14)
#define IBP_KEY_PEER(peer) ((uint64_t)(uint32_t)(peer) << 28)

static inline enum ibp_kind ibp_key_kind(uint64_t key)
{
    return (enum ibp_kind)(key >> 12 & 3);
}

/* Offset of the slot that a key hashes to, in bytes. */
static inline uint64_t ibp_key_place(uint64_t key, uint64_t mask)
{
    return (key * UINT64_C(0x9e3779b97f4a7c15)) >> 35 & mask;
}

/* The slot that a key hashes to, or the one behind it: its own nearly always, once it was counted under. */
static inline struct ibp_slot *ibp_slot_of(uint64_t key)
{
    struct ibp_slot *slot = (struct ibp_slot *)((char *)ibp_counters.slots + ibp_key_place(key, ibp_counters.mask));

    return IBP_LIKELY(slot->key == key) ? slot : slot + 1;
}

static inline void ibp_add(uint64_t *amount, uint64_t bytes)
{
    amount[0] += bytes;
    amount[1] += 1;
}

static inline void ibp_add_size(uint64_t *bins, uint64_t bytes)
{
    const unsigned zeros = (unsigned)__builtin_clzll(2 * bytes | 1); /* messages of 2^63 bytes and more do not occur */

    if (zeros > 63) __builtin_unreachable(); /* saves the compiler an extension of the sign */
    bins[63 - zeros] += 1;
}

/* The slot of what has a counter already, in the region of now. Small and without a call; NULL leaves all others to ibp_count.
 * Only while one thread at a time is in MPI. */
static inline const struct ibp_slot *ibp_slot_known(uint64_t key_of_operation, int peer)
{
    const uint64_t key = key_of_operation | ibp_counters.region_key | IBP_KEY_PEER(peer);
    const struct ibp_slot *slot = ibp_slot_of(key);

    return IBP_LIKELY(slot->key == key) ? slot : NULL;
}

/* The region that bytes are counted in from now on. To be called by ibp_contexts_enter_region alone, which keeps slots of the
 * region before. */
void ibp_counters_enter(uint32_t region);

/* Counts one message. The operation must be wanted. */
static inline void ibp_count(unsigned operation, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer,
                             uint64_t bytes)
{
    struct ibp_slot *slot;
    uint64_t key;

    if (IBP_UNLIKELY(ibp_periodic_in_messages)) ibp_periodic_check_now();
    ibp_lock();
    key = IBP_KEY_OF(operation, kind, direction) | ibp_counters.region_key | IBP_KEY_PEER(peer);
    slot = ibp_slot_of(key);
    if (IBP_UNLIKELY(slot->key != key)) slot = ibp_counters_find(key);
    ibp_add(slot->amount, bytes);
    ibp_add_size(slot->bins, bytes);
    ibp_unlock();
}

#endif
