/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Counters of bytes and messages.
 *
 * The recording contains a record for each counter, at an address that does not change. A hash table in private memory
 * maps the counter's key to the record, usually with one memory access.
 */
#ifndef IBPROF_COUNTING_COUNTERS_H
#define IBPROF_COUNTING_COUNTERS_H

#include "counting/origins.h"
#include "platform/system.h"
#include "recording/operations.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

/* The counter of one key. `bins` counts messages by size. If sizes are not recorded, `bins` points to an unused
 * array. */
struct ibp_slot {
    /* 0 if the slot is free. */
    uint64_t key;
    /* Bytes, messages. */
    uint64_t *amount;
    uint64_t *bins;
    /* Index of the record in the recording, plus 1; 0 if the recording was full. */
    uint64_t ordinal;
};

struct ibp_counters {
    /* The hash table. The number of slots is a power of two. One more slot, always free, follows the last slot, because
     * ibp_slot_of may return this slot. */
    struct ibp_slot *slots;
    /* `hash & mask` is the offset of a slot in bytes. */
    uint64_t mask;
    uint64_t used;
    enum ibp_source source;
    struct ibp_process *process;
};

extern IBP_INTERNAL struct ibp_counters ibp_counters;

/* Create the hash table. Return 0 or a negative errno. */
int ibp_counters_open(struct ibp_process *process, enum ibp_source source);

/* Return the slot of a key, created if needed; never NULL. */
struct ibp_slot *ibp_counters_find(uint64_t key);

/* Move the bytes and messages of region `from` to the counters of region `into`. */
void ibp_counters_move(uint32_t from, uint32_t into);

void ibp_counters_clear(void);

/* Add the sent and fetched user data of each peer to the total of the peer's group (struct ibp_snapshot). */
void ibp_counters_by_group(uint32_t group_ranks, uint64_t *bytes, uint64_t *messages);

/* Report on stderr, once per job, why no more counters can be recorded. */
void ibp_counters_note_full(void);

/* Add the user data of all regions to the totals of a mark (struct ibp_mark). */
void ibp_counters_total(struct ibp_mark *mark);

/* Kind, direction and operation in one number: 2 bits for the kind, 2 for the direction, 10 for the operation. */
#define IBP_KEY_OPERATION_MASK 0x3ff
#define IBP_KEY_OF(operation, kind, direction) ((uint64_t)(kind) << 12 | (uint64_t)(direction) << 10 | (operation))

static inline enum ibp_kind ibp_key_kind(uint64_t key_of_operation)
{
    return (enum ibp_kind)(key_of_operation >> 12 & 3);
}

/* The value of the kind field in the key of a demand (counting/ledger.h). The slot of a demand counts calls instead of
 * messages, and the slot's key contains a partner instead of a peer. */
#define IBP_KEY_DEMAND 3

/* The key of a slot: peer (32 bits), origin (24), kind (2) and direction field (2). The direction field is the
 * direction + 1 for a counter, and 0 for size bins. So the key of a counter is never 0. Small fields are in the low
 * bits: the hash multiplies the key, so low bits affect all bits that select a slot. */
#define IBP_SLOT_KEY(origin, kind, direction, peer)                                                                    \
    ((uint64_t)(uint32_t)(peer) << 28 | (uint64_t)(origin) << 4 | (uint64_t)(kind) << 2 | ((uint64_t)(direction) + 1))

static inline uint32_t ibp_key_origin(uint64_t key)
{
    return (uint32_t)(key >> 4) & ((1U << IBP_ORIGIN_BITS) - 1);
}

/* Return the offset in bytes of the slot at a key's hash position. */
static inline uint64_t ibp_key_place(uint64_t key, uint64_t mask)
{
    return (key * UINT64_C(0x9e3779b97f4a7c15)) >> 35 & mask;
}

/* Return the slot at a key's hash position if the slot has the key; otherwise the next slot. The caller must check the
 * key of the returned slot. */
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

static inline unsigned ibp_size_bin(uint64_t bytes)
{
    const unsigned zeros = (unsigned)__builtin_clzll(2 * bytes | 1); /* messages have less than 2^63 bytes */

    if (zeros > 63) __builtin_unreachable(); /* then the compiler omits a sign extension */
    return 63 - zeros;
}

static inline void ibp_add_size(uint64_t *bins, uint64_t bytes)
{
    bins[ibp_size_bin(bytes)] += 1;
}

/* Return the slot of an existing counter, without a function call. Return NULL if the slot is neither at the key's hash
 * position nor at the next position. The caller then calls a function that finds or creates the slot. Call this only
 * while at most one thread can be in MPI. */
static inline const struct ibp_slot *ibp_slot_known(uint32_t origin, enum ibp_kind kind, enum ibp_direction direction,
                                                    int peer)
{
    const uint64_t key = IBP_SLOT_KEY(origin, kind, direction, peer);
    const struct ibp_slot *slot = ibp_slot_of(key);

    return IBP_LIKELY(slot->key == key) ? slot : NULL;
}

/* Return the slot of a key, created if needed. */
static inline struct ibp_slot *ibp_slot_made(uint64_t key)
{
    struct ibp_slot *slot = ibp_slot_of(key);

    return IBP_LIKELY(slot->key == key) ? slot : ibp_counters_find(key);
}

#endif
