/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A tally: for each route and opcode, sums of the work requests that the provider has neither accepted nor refused yet.
 */
#ifndef IBPROF_SOURCES_VERBS_TALLY_H
#define IBPROF_SOURCES_VERBS_TALLY_H

#include "sources/verbs/routes.h"

#define IBP_TALLY_FIRST 8
#define IBP_OPCODE_NOTHING IBP_OPCODES /* opcode of a request that moves no bytes over the network */

struct ibp_tally_entry {
    struct ibp_route *route;
    uint64_t opcode;
    uint64_t bytes, messages;
};

struct ibp_tally {
    /* Pointer to `first`, or to a larger array. */
    struct ibp_tally_entry *entries;
    uint32_t count, capacity;
    struct ibp_tally_entry first[IBP_TALLY_FIRST];
};

static inline void ibp_tally_start(struct ibp_tally *tally)
{
    if (!tally->capacity) {
        tally->entries = tally->first;
        tally->capacity = IBP_TALLY_FIRST;
    }
    tally->count = 0;
}

/* Add requests to a tally. If memory for a new entry is exhausted, count the requests at once, as if the provider had
 * accepted them. */
void ibp_tally_add(struct ibp_tally *tally, struct ibp_route *route, unsigned opcode, uint64_t bytes,
                   uint64_t messages);

static inline void ibp_tally_count(const struct ibp_tally *tally)
{
    for (uint32_t i = 0; i < tally->count; i++)
        if (tally->entries[i].messages)
            ibp_route_count(tally->entries[i].route, (unsigned)tally->entries[i].opcode, tally->entries[i].bytes,
                            tally->entries[i].messages);
}

void ibp_tally_free(struct ibp_tally *tally);

#endif
