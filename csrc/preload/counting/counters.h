/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Counters: the only code that runs for every message.
 *
 * Their records lie in the recording, where they never move. An index in private memory finds the record of a key in
 * one probe.
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

/* The counter of one key. `bins` counts messages by size; where sizes are not recorded it is a scratch array. */
struct ibp_slot {
    /* 0 in a free slot. */
    uint64_t key;
    /* Bytes, messages. */
    uint64_t *amount;
    uint64_t *bins;
    /* Number of the counter in the recording, from 1; 0 when there was no space for it. */
    uint64_t ordinal;
};

struct ibp_counters {
    /* A power of two slots, followed by a free one. */
    struct ibp_slot *slots;
    /* Mask of the offset of a slot in bytes. */
    uint64_t mask;
    /* Of the region in which bytes are counted now. */
    uint64_t region_key;
    uint64_t used;
    enum ibp_source source;
    struct ibp_process *process;
};

extern IBP_INTERNAL struct ibp_counters ibp_counters;

/* Make the index. Return 0 or a negative errno. */
int ibp_counters_open(struct ibp_process *process, enum ibp_source source);

/* Return the slot of a key that is not where it hashes to, made if needed. Never NULL. */
struct ibp_slot *ibp_counters_find(uint64_t key);

/* Move what was counted in one region to another. */
void ibp_counters_move(uint32_t from, uint32_t into);

/* Reset all counters. */
void ibp_counters_clear(void);

/* Add the user data sent and fetched to the groups of its peers, as in ibp_snapshot. */
void ibp_counters_by_group(uint32_t group_ranks, uint64_t *bytes, uint64_t *messages);

/* Print that the recording has no space for more counters, once a job. */
void ibp_counters_note_full(void);

/* Set a mark's totals of user data over all regions. */
void ibp_counters_total(struct ibp_mark *mark);

/* A key identifies a counter: peer 32 bits, region 14, kind 2, direction 2, operation 10, which is never 0. Small
 * numbers are in the low bits, so that the multiplication spreads them over the bits that select a slot. An
 * operation alone is the key of user data sent. */
#define IBP_KEY_OPERATION_MASK 0x3ff
#define IBP_KEY_OF(operation, kind, direction) ((uint64_t)(kind) << 12 | (uint64_t)(direction) << 10 | (operation))
#define IBP_KEY_REGION(region) ((uint64_t)(region) << 14)
#define IBP_KEY_PEER(peer) ((uint64_t)(uint32_t)(peer) << 28)

static inline enum ibp_kind ibp_key_kind(uint64_t key)
{
    return (enum ibp_kind)(key >> 12 & 3);
}

/* Return the offset in bytes of the slot that a key hashes to. */
static inline uint64_t ibp_key_place(uint64_t key, uint64_t mask)
{
    return (key * UINT64_C(0x9e3779b97f4a7c15)) >> 35 & mask;
}

/* Return the slot that a key hashes to, or the next one: nearly always the key's own once it was counted. */
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

/* Return the slot of a key that has a counter in the present region, without a call; NULL leaves other keys to
 * ibp_count. Only while one thread at a time is in MPI. */
static inline const struct ibp_slot *ibp_slot_known(uint64_t key_of_operation, int peer)
{
    const uint64_t key = key_of_operation | ibp_counters.region_key | IBP_KEY_PEER(peer);
    const struct ibp_slot *slot = ibp_slot_of(key);

    return IBP_LIKELY(slot->key == key) ? slot : NULL;
}

/* Set the region in which bytes are counted from now on. Called by ibp_contexts_enter_region alone, since contexts
 * keep slots of the former region. */
void ibp_counters_enter(uint32_t region);

/* Count one message. The operation must be wanted. */
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
