/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What several work requests amount to, before it is known which of them are accepted.
 */
#ifndef IBPROF_SOURCES_VERBS_TALLY_H
#define IBPROF_SOURCES_VERBS_TALLY_H

#include "sources/verbs/routes.h"

#define IBP_TALLY_FIRST 8
#define IBP_OPCODE_NOTHING IBP_OPCODES /* of a request that stays within the host, or moves no bytes */

struct ibp_tally_entry {
    struct ibp_route *route;
    uint64_t opcode;
    uint64_t bytes, messages;
};

struct ibp_tally {
    /* `first`, or more of them. */
    struct ibp_tally_entry *entries;
    uint32_t count, capacity;
    struct ibp_tally_entry first[IBP_TALLY_FIRST];
};

/* Empties a tally; it keeps the memory that it has. */
static inline void ibp_tally_start(struct ibp_tally *tally)
{
    if (!tally->capacity) {
        tally->entries = tally->first;
        tally->capacity = IBP_TALLY_FIRST;
    }
    tally->count = 0;
}

/* Adds to what goes by a route. Without memory for another route it is counted at once, as if it were accepted. */
void ibp_tally_add(struct ibp_tally *tally, struct ibp_route *route, unsigned opcode, uint64_t bytes,
                   uint64_t messages);

/* Counts all of it. */
static inline void ibp_tally_count(const struct ibp_tally *tally)
{
    for (uint32_t i = 0; i < tally->count; i++)
        if (tally->entries[i].messages)
            ibp_route_count(tally->entries[i].route, (unsigned)tally->entries[i].opcode, tally->entries[i].bytes,
                            tally->entries[i].messages);
}

/* Gives back memory beyond the first entries. */
void ibp_tally_free(struct ibp_tally *tally);

#endif
