/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/open_requests.h"
#include "counting/repeats.h"
#include "platform/memory.h"

#include <stddef.h>

#define PLACES IBP_OPEN_REQUEST_PLACES

_Static_assert(IBP_OPEN_REQUESTS_MAX < PLACES, "there is a free place");
_Static_assert(sizeof(struct ibp_open_request) == 120, "the table has 30 KiB (docs/formats/recording.md)");

struct ibp_open_request *ibp_open_request_places;
static uint32_t used, last_serial;

uint32_t ibp_open_requests;

static struct ibp_open_request *probe(uintptr_t request)
{
    uint32_t place = ibp_open_request_home(request);

    while (ibp_open_request_places[place].request && ibp_open_request_places[place].request != request)
        place = (place + 1) % PLACES;
    return &ibp_open_request_places[place];
}

struct ibp_open_request *ibp_open_request_find(uintptr_t request)
{
    struct ibp_open_request *const entry = ibp_open_request_places && request ? probe(request) : NULL;

    return entry && entry->request ? entry : NULL;
}

bool ibp_open_request_of(enum ibp_open_role role, intptr_t communicator, int source, int tag)
{
    for (uint32_t i = 0; ibp_open_request_places && i < PLACES; i++) {
        const struct ibp_open_request *const entry = &ibp_open_request_places[i];

        if (entry->request && entry->is_persistent && entry->role == role && entry->communicator == communicator &&
            entry->source == source && entry->tag == tag)
            return true;
    }
    return false;
}

struct ibp_open_request *ibp_open_request_add(uintptr_t request)
{
    struct ibp_open_request *entry = ibp_open_request_find(request);

    if (entry) ibp_open_request_remove(entry);
    if (!ibp_open_request_places) ibp_open_request_places = ibp_memory_map(PLACES * sizeof *ibp_open_request_places);
    if (!ibp_open_request_places || !request || used == IBP_OPEN_REQUESTS_MAX) return NULL;
    entry = probe(request);
    used++;
    *entry = (struct ibp_open_request){.request = request, .serial = ++last_serial};
    return entry;
}

void ibp_open_requests_forget_envelopes(void)
{
    for (uint32_t i = 0; ibp_open_request_places && i < PLACES; i++) ibp_open_request_places[i].envelope = NULL;
}

/* Later entries of the probe sequence fill the gap. No entry moves before its own hash position. */
void ibp_open_request_remove(struct ibp_open_request *entry)
{
    uint32_t gap = (uint32_t)(entry - ibp_open_request_places);

    ibp_open_request_start(entry, false);
    used--;
    for (uint32_t next = (gap + 1) % PLACES; ibp_open_request_places[next].request; next = (next + 1) % PLACES) {
        const uint32_t from_home = (next - ibp_open_request_home(ibp_open_request_places[next].request)) % PLACES;

        if (from_home < (next - gap) % PLACES) continue;
        ibp_open_request_places[gap] = ibp_open_request_places[next];
        gap = next;
    }
    ibp_open_request_places[gap] = (struct ibp_open_request){0};
}

void ibp_open_request_start(struct ibp_open_request *entry, bool is_started)
{
    const uint32_t started = ibp_open_requests + (is_started ? 1U : -1U);

    if (entry->is_started == is_started) return;
    __atomic_store_n(&ibp_open_requests, started, __ATOMIC_RELAXED);
    entry->is_started = is_started;
    ibp_repeats_set_watched(IBP_WATCHED_REQUESTS, started);
}
