/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/origins.h"
#include "platform/memory.h"
#include "recording/operations.h"
#include "recording/recording.h"

#include <stdbool.h>
#include <string.h>

#define FIRST_ORIGINS 256
#define LARGEST_NUMBER (IBP_ORIGIN_UNKNOWN - 1)

_Static_assert(IBP_OPERATIONS < IBP_OPERATIONS_MAX, "each operation has a place");

struct origin {
    uint32_t region;
    uint32_t operation;
    uint32_t site;
    uint32_t record;
    struct ibp_time *time;
};

uint32_t ibp_origins_without_site[IBP_OPERATIONS_MAX];

static struct {
    /* Origins by number, from 1. */
    struct origin *made;
    /* Hash table of origins' numbers; 0 if an entry is free. The table has 2 * capacity entries. */
    uint32_t *places;
    uint32_t count, capacity;
    uint32_t region;
} origins;

void ibp_origins_enter(uint32_t region)
{
    if (region != origins.region) memset(ibp_origins_without_site, 0, sizeof ibp_origins_without_site);
    origins.region = region;
}

static uint32_t *place_of(uint32_t region, uint32_t operation, uint32_t site)
{
    const uint64_t key = (uint64_t)region << 40 ^ (uint64_t)operation << 32 ^ site;
    const uint32_t mask = 2 * origins.capacity - 1;
    uint32_t place = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;

    for (; origins.places[place]; place = (place + 1) & mask) {
        const struct origin *origin = &origins.made[origins.places[place]];

        if (origin->region == region && origin->operation == operation && origin->site == site) break;
    }
    return &origins.places[place];
}

static bool grow(void)
{
    const uint32_t before = origins.capacity, capacity = before ? 2 * before : FIRST_ORIGINS;
    struct origin *const made = ibp_memory_map(capacity * sizeof *made), *const old_made = origins.made;
    uint32_t *const places = ibp_memory_map(2 * capacity * sizeof *places), *const old_places = origins.places;

    if (!made || !places) {
        ibp_memory_unmap(made, capacity * sizeof *made);
        ibp_memory_unmap(places, 2 * capacity * sizeof *places);
        return false;
    }
    if (old_made) memcpy(made, old_made, before * sizeof *made);
    origins.made = made;
    origins.places = places;
    origins.capacity = capacity;
    for (uint32_t i = 1; i <= origins.count; i++) *place_of(made[i].region, made[i].operation, made[i].site) = i;
    ibp_memory_unmap(old_made, before * sizeof *made);
    ibp_memory_unmap(old_places, 2 * before * sizeof *places);
    return true;
}

static uint32_t record(uint32_t region, uint32_t operation, uint32_t site)
{
    struct ibp_origin *origin = ibp_recording_reserve(IBP_SEGMENT_ORIGINS);

    if (!origin) return UINT32_MAX;
    origin->region = region;
    origin->operation = operation;
    origin->site = site;
    ibp_recording_publish(IBP_SEGMENT_ORIGINS);
    return ibp_recording_used(IBP_SEGMENT_ORIGINS) - 1;
}

static uint32_t find(uint32_t region, uint32_t operation, uint32_t site)
{
    uint32_t *place = origins.capacity ? place_of(region, operation, site) : NULL;

    if (place && *place) return *place;
    if (origins.count == LARGEST_NUMBER) return IBP_ORIGIN_UNKNOWN;
    if (origins.count + 1 >= origins.capacity) {
        if (!grow()) return IBP_ORIGIN_UNKNOWN;
        place = place_of(region, operation, site);
    }
    origins.made[++origins.count] = (struct origin){region, operation, site, record(region, operation, site), NULL};
    return *place = origins.count;
}

uint32_t ibp_origin_at_site(unsigned operation, uint32_t site)
{
    const uint32_t origin = find(origins.region, operation, site);

    if (site == IBP_SITE_UNKNOWN) ibp_origins_without_site[operation] = origin;
    return origin;
}

uint32_t ibp_origin_moved(uint32_t origin, uint32_t region)
{
    if (origin == IBP_ORIGIN_UNKNOWN) return origin;
    return find(region, origins.made[origin].operation, origins.made[origin].site);
}

uint32_t ibp_origin_record_moved(uint32_t record, uint32_t from, uint32_t into)
{
    /* An origin's number exceeds the index of its record: numbers begin at 1, and origins without a record have numbers
     * too. */
    for (uint32_t i = record + 1; i <= origins.count && i; i++)
        if (origins.made[i].record == record)
            return origins.made[i].region == from ? ibp_origin_record(ibp_origin_moved(i, into)) : record;
    return record;
}

uint32_t ibp_origin_region(uint32_t origin)
{
    return origins.made[origin].region;
}

uint32_t ibp_origin_record(uint32_t origin)
{
    return origin == IBP_ORIGIN_UNKNOWN ? UINT32_MAX : origins.made[origin].record;
}

uint32_t ibp_origins_count(void)
{
    return origins.count;
}

struct ibp_time *ibp_origin_time(uint32_t origin)
{
    return origin == IBP_ORIGIN_UNKNOWN ? NULL : origins.made[origin].time;
}

void ibp_origin_set_time(uint32_t origin, struct ibp_time *time)
{
    if (origin != IBP_ORIGIN_UNKNOWN) origins.made[origin].time = time;
}
