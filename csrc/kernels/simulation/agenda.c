/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/agenda.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 1 << 21 };

/* Allocate memory that begins at a cache line. Its contents are undefined. */
static void *allocate(uint64_t bytes)
{
    const size_t page = bytes >= HUGE_PAGE ? HUGE_PAGE : 64, size = (bytes / page + 1) * page;
    void *made = aligned_alloc(page, size);

    if (made && page == HUGE_PAGE) madvise(made, size, MADV_HUGEPAGE); /* if madvise fails, small pages are used */
    return made;
}

void *ibp_sim_allocate(uint64_t count, size_t size)
{
    void *made = allocate(count * size);

    return made ? memset(made, 0, count * size) : NULL;
}

bool ibp_sim_grow(struct ibp_sim *sim, void **array, uint64_t count, uint64_t capacity, size_t size)
{
    void *larger = allocate(capacity * size);

    if (!larger) {
        sim->failed = -ENOMEM;
        return false;
    }
    if (count) memcpy(larger, *array, count * size);
    free(*array);
    *array = larger;
    return true;
}

static bool is_before(const struct ibp_sim_event *a, const struct ibp_sim_event *b)
{
    return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static void push(struct ibp_sim *sim, uint64_t when, struct ibp_sim_packet packet, bool is_packet)
{
    const struct ibp_sim_event event = {.when = when, .order = sim->order++, .packet = packet, .is_packet = is_packet};
    uint64_t at;

    assert(when > sim->state.now || !sim->state.steps);
    if (sim->heap_count == sim->heap_capacity) {
        const uint64_t capacity = 2 * sim->heap_capacity + 1024;
        struct ibp_sim_event *larger = realloc(sim->heap, capacity * sizeof *larger);

        if (!larger) {
            sim->failed = -ENOMEM;
            return;
        }
        sim->heap = larger;
        sim->heap_capacity = capacity;
    }
    for (at = sim->heap_count++; at; at = (at - 1) / 2) {
        if (!is_before(&event, &sim->heap[(at - 1) / 2])) break;
        sim->heap[at] = sim->heap[(at - 1) / 2];
    }
    sim->heap[at] = event;
}

struct ibp_sim_event ibp_sim_pop_event(struct ibp_sim *sim)
{
    const struct ibp_sim_event first = sim->heap[0], last = sim->heap[--sim->heap_count];
    uint64_t at = 0;

    for (;;) {
        uint64_t child = 2 * at + 1;

        if (child >= sim->heap_count) break;
        if (child + 1 < sim->heap_count && is_before(&sim->heap[child + 1], &sim->heap[child])) child++;
        if (!is_before(&sim->heap[child], &last)) break;
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    sim->heap[at] = last;
    return first;
}

void ibp_sim_schedule_process(struct ibp_sim *sim, uint64_t when, uint32_t process)
{
    push(sim, when, (struct ibp_sim_packet){.client = process}, false);
}

void ibp_sim_schedule_far_packet(struct ibp_sim *sim, uint64_t when, struct ibp_sim_packet packet)
{
    push(sim, when, packet, true);
}

static uint32_t take_chunk(struct ibp_sim *sim)
{
    const uint32_t free_one = sim->free_chunk;

    if (free_one != IBP_SIM_NOTHING) {
        sim->free_chunk = sim->slot[free_one].next;
        return free_one;
    }
    if (sim->slots == sim->slot_capacity) {
        const uint32_t capacity = 2 * sim->slot_capacity + (1 << 12);
        void *slot = sim->slot;

        if (!ibp_sim_grow(sim, &slot, sim->slots, capacity, sizeof *sim->slot)) return IBP_SIM_NOTHING;
        sim->slot = slot;
        sim->slot_capacity = capacity;
    }
    sim->slots += IBP_SIM_CHUNK;
    return sim->slots - IBP_SIM_CHUNK;
}

bool ibp_sim_add_chunk(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_bucket *bucket = &sim->bucket[number];
    const uint32_t chunk = take_chunk(sim);

    if (chunk == IBP_SIM_NOTHING) return false;
    if (bucket->end) {
        sim->slot[bucket->end - IBP_SIM_CHUNK].next = chunk;
    } else {
        bucket->first = chunk;
        sim->bucket_used[number / 64] |= UINT64_C(1) << (number % 64);
    }
    bucket->end = chunk + 1;
    return true;
}
