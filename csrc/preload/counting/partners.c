/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/partners.h"

#include "ibprof_recording.h"

#define GROUPS_MAX 4096
#define NUMBER_GROUP 0x80000000

/* Groups of communicators. `partner`: the values of ibp_demand.partner in the recording. The number of a group as a
 * partner is its index plus NUMBER_GROUP. */
static struct {
    uint64_t partner[GROUPS_MAX];
    uint32_t count;
} groups;

_Static_assert(IBP_PARTNER_NUMBER_UNKNOWN == IBP_PEER_UNKNOWN, "an unknown peer is an unknown partner");

uint64_t ibp_partner_of(uint32_t number)
{
    if (number == IBP_PARTNER_NUMBER_UNKNOWN) return IBP_PARTNER_UNKNOWN;
    if (number == IBP_PARTNER_NUMBER_FAILED) return IBP_PARTNER_FAILED;
    return number & NUMBER_GROUP ? groups.partner[number & ~NUMBER_GROUP] : number;
}

int ibp_partner_size(uint32_t number)
{
    return (int)(ibp_partner_of(number) >> IBP_PARTNER_SIZE_SHIFT & IBP_PARTNER_SIZE_MASK);
}

static uint32_t number_group(uint64_t partner)
{
    for (uint32_t number = 0; number < groups.count; number++)
        if (groups.partner[number] == partner) return number | NUMBER_GROUP;
    if (groups.count == GROUPS_MAX) return IBP_PARTNER_NUMBER_UNKNOWN;
    groups.partner[groups.count] = partner;
    return groups.count++ | NUMBER_GROUP;
}

static uint32_t find_group(const struct ibp_communicator *communicator)
{
    const uint64_t size = (uint64_t)communicator->size;
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* start value of FNV-1a */

    if (!size || size > IBP_PARTNER_SIZE_MASK) return IBP_PARTNER_NUMBER_UNKNOWN;
    if (communicator->is_between) return IBP_PARTNER_NUMBER_UNKNOWN;
    for (int rank = 0; communicator->world_rank && rank < communicator->size; rank++) {
        if (communicator->world_rank[rank] == IBP_PEER_UNKNOWN) return IBP_PARTNER_NUMBER_UNKNOWN;
        hash = (hash ^ communicator->world_rank[rank]) * UINT64_C(0x100000001b3);
    }
    hash = (hash ^ hash >> 32) & ((UINT64_C(1) << IBP_PARTNER_SIZE_SHIFT) - 1);
    return number_group(IBP_PARTNER_GROUP | size << IBP_PARTNER_SIZE_SHIFT | hash);
}

uint32_t ibp_partner_group(struct ibp_communicator *communicator)
{
    if (!communicator->is_grouped) communicator->group = find_group(communicator);
    communicator->is_grouped = true;
    return communicator->group;
}
