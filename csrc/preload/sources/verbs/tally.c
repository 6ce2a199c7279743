/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/verbs/tally.h"
#include "platform/memory.h"

#include <string.h>

static bool grow(struct ibp_tally *tally)
{
    const uint32_t capacity = tally->capacity == IBP_TALLY_FIRST ? 128 : 2 * tally->capacity;
    struct ibp_tally_entry *larger = ibp_memory_map(capacity * sizeof *larger);

    if (!larger) return false;
    memcpy(larger, tally->entries, tally->count * sizeof *larger);
    ibp_tally_free(tally);
    tally->entries = larger;
    tally->capacity = capacity;
    return true;
}

void ibp_tally_add(struct ibp_tally *tally, struct ibp_route *route, unsigned opcode, uint64_t bytes, uint64_t messages)
{
    /* Search only the newest entries, because most requests of a list have the same route. So the tally may contain
     * several entries with one route and opcode. */
    const uint32_t oldest = tally->count > IBP_TALLY_FIRST ? tally->count - IBP_TALLY_FIRST : 0;

    for (uint32_t i = tally->count; i-- > oldest;)
        if (tally->entries[i].route == route && tally->entries[i].opcode == opcode) {
            tally->entries[i].bytes += bytes;
            tally->entries[i].messages += messages;
            return;
        }
    if (tally->count == tally->capacity && !grow(tally)) {
        ibp_route_count(route, opcode, bytes, messages);
        return;
    }
    tally->entries[tally->count++] =
        (struct ibp_tally_entry){.route = route, .opcode = opcode, .bytes = bytes, .messages = messages};
}

void ibp_tally_free(struct ibp_tally *tally)
{
    if (tally->entries != tally->first) ibp_memory_unmap(tally->entries, tally->capacity * sizeof *tally->entries);
    tally->entries = tally->first;
    tally->capacity = IBP_TALLY_FIRST;
}
