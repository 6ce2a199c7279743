/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/freed_communicators.h"
#include "platform/memory.h"
#include "recording/operations.h"

#include <stddef.h>

/* Number of remembered communicators. A newly freed communicator replaces the oldest. Few programs free communicators
 * with pending collectives. */
#define KEPT 16

static struct freed {
    uint64_t key; /* key of the communicator's context; 0 until a message shows the context */
    struct ibp_tag_memory *tags; /* NULL if the entry is free */
} all[KEPT];

static unsigned next;

static void drop(struct freed *freed)
{
    ibp_memory_unmap(freed->tags, sizeof *freed->tags);
    *freed = (struct freed){0};
}

void ibp_mpich_keep_freed(uint64_t key, struct ibp_communicator *communicator)
{
    if (!communicator->tags) return;
    if (all[next].tags) drop(&all[next]);
    all[next] = (struct freed){key, communicator->tags};
    communicator->tags = NULL;
    next = (next + 1) % KEPT;
}

/* Find the freed communicators with this key on which a call has the tag. Set `number` to the number of these
 * communicators, and `place` to the index of the last one. Return the number of the `ibp_call` that has the tag on the
 * last of these; IBP_OPERATION_NONE if none is found. */
static unsigned find_call(uint64_t key, uint32_t tag, unsigned *place, unsigned *number)
{
    unsigned call = IBP_OPERATION_NONE;

    *number = 0;
    for (unsigned i = 0; i < KEPT; i++) {
        const struct ibp_communicator freed = {.tags = all[i].tags};
        const unsigned found = all[i].key == key ? ibp_tag_call(&freed, (int)tag) : IBP_OPERATION_NONE;

        if (found == IBP_OPERATION_NONE) continue;
        call = found;
        *place = i;
        ++*number;
    }
    return call;
}

unsigned ibp_mpich_freed_call(uint64_t key, uint32_t tag)
{
    unsigned place, number;

    return find_call(key, tag, &place, &number);
}

unsigned ibp_mpich_freed_call_guessed(uint64_t key, uint32_t tag)
{
    unsigned place = 0, number;
    const unsigned call = find_call(0, tag, &place, &number);

    if (number != 1) return IBP_OPERATION_NONE;
    all[place].key = key;
    return call;
}

void ibp_mpich_drop_freed(uint64_t key)
{
    for (unsigned i = 0; i < KEPT; i++)
        if (all[i].tags && all[i].key == key) drop(&all[i]);
}
