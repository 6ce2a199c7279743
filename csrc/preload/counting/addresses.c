/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/addresses.h"
#include "platform/memory.h"
#include "platform/text.h"
#include "recording/recording.h"

#include "ibprof_recording.h"

#include <string.h>

#define FIRST_PLACES 64
#define OWN_MAX 64

static struct {
    struct ibp_address own[OWN_MAX];
    uint32_t own_count;
    struct ibp_peers by_hash;
    /* Number of addresses in the recording. */
    uint32_t recorded;
    bool open;
} addresses;

static uint64_t place_of(uint64_t key, uint64_t mask)
{
    return (key * UINT64_C(0x9e3779b97f4a7c15)) >> 24 & mask;
}

struct ibp_peer *ibp_peer_find(const struct ibp_peers *peers, uint64_t key)
{
    if (!peers->place) return NULL;
    for (uint64_t place = place_of(key, peers->mask);; place = (place + 1) & peers->mask) {
        if (peers->place[place].key == key) return &peers->place[place];
        if (!peers->place[place].key) return NULL;
    }
}

static bool ensure_capacity(struct ibp_peers *peers)
{
    const uint64_t places = peers->place ? peers->mask + 1 : 0;
    const uint64_t larger = places ? 2 * places : FIRST_PLACES;
    struct ibp_peer *moved;

    if (peers->used * 2 < places) return true;
    moved = ibp_memory_map(larger * sizeof *moved);
    if (!moved) return peers->used + 1 < places;
    for (uint64_t i = 0; i < places; i++) {
        uint64_t place = place_of(peers->place[i].key, larger - 1);

        if (!peers->place[i].key) continue;
        while (moved[place].key) place = (place + 1) & (larger - 1);
        moved[place] = peers->place[i];
    }
    ibp_memory_unmap(peers->place, places * sizeof *moved);
    peers->place = moved;
    peers->mask = larger - 1;
    return true;
}

struct ibp_peer *ibp_peer_enter(struct ibp_peers *peers, uint64_t key)
{
    struct ibp_peer *known = ibp_peer_find(peers, key);
    uint64_t place;

    if (known) return known;
    if (!key || !ensure_capacity(peers)) return NULL;
    place = place_of(key, peers->mask);
    while (peers->place[place].key) place = (place + 1) & peers->mask;
    peers->place[place] = (struct ibp_peer){.key = key};
    peers->used++;
    return &peers->place[place];
}

void ibp_peers_clear(struct ibp_peers *peers)
{
    if (peers->place) memset(peers->place, 0, (peers->mask + 1) * sizeof *peers->place);
    peers->used = 0;
}

static uint64_t hash_bytes(const unsigned char *bytes, size_t count)
{
    uint64_t hash = IBP_HASH_START;

    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

/* Fill a record. If the address is too long for the record, the record ends in a hash of the whole address. */
static void fill(struct ibp_address *record, const void *address, size_t bytes, uint64_t hash, bool own)
{
    memset(record, 0, sizeof *record);
    record->bytes = (uint32_t)bytes;
    record->own = own;
    memcpy(record->address, address, bytes < sizeof record->address ? bytes : sizeof record->address);
    if (bytes > sizeof record->address)
        memcpy(record->address + sizeof record->address - sizeof hash, &hash, sizeof hash);
}

static bool put(const struct ibp_address *record)
{
    struct ibp_address *place = ibp_recording_reserve(IBP_SEGMENT_ADDRESSES);

    if (!place) return false;
    *place = *record;
    ibp_recording_publish(IBP_SEGMENT_ADDRESSES);
    addresses.recorded++;
    return true;
}

static uint32_t enter(const void *address, size_t bytes, bool own)
{
    const uint64_t hash = hash_bytes(address, bytes);
    struct ibp_peer *entry = ibp_peer_enter(&addresses.by_hash, hash);
    struct ibp_address record;

    if (!entry) return IBP_PEER_UNKNOWN;
    if (entry->number) return entry->number;
    fill(&record, address, bytes, hash, own);
    if (addresses.open) {
        if (!put(&record)) return IBP_PEER_UNKNOWN;
        entry->number = IBP_PEER_ADDRESS | (addresses.recorded - 1);
    } else {
        if (!own || addresses.own_count == OWN_MAX) return IBP_PEER_UNKNOWN;
        entry->number = IBP_PEER_ADDRESS | addresses.own_count;
        addresses.own[addresses.own_count++] = record;
    }
    entry->address = own;
    return entry->number;
}

uint32_t ibp_address_of_own(const void *address, size_t bytes)
{
    return enter(address, bytes, true);
}

uint32_t ibp_address_of_peer(const void *address, size_t bytes)
{
    return enter(address, bytes, false);
}

bool ibp_address_is_own(uint32_t peer)
{
    return peer != IBP_PEER_UNKNOWN && peer >= IBP_PEER_ADDRESS && (peer & ~IBP_PEER_ADDRESS) < addresses.own_count;
}

void ibp_addresses_record(void)
{
    for (uint32_t i = 0; i < addresses.own_count; i++) (void)put(&addresses.own[i]);
    addresses.open = true;
}
