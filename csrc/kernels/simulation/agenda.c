/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/agenda.h"

#include <errno.h>
#include <stdlib.h>

static bool is_before(const struct ibp_sim_event *a, const struct ibp_sim_event *b)
{
    return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static void push(struct ibp_sim *sim, uint64_t when, uint32_t subject, bool is_packet)
{
    const struct ibp_sim_event event = {
        .when = when, .order = sim->order++, .subject = subject, .is_packet = is_packet};
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
    push(sim, when, process, false);
}

void ibp_sim_schedule_far_packet(struct ibp_sim *sim, uint64_t when, uint32_t packet)
{
    push(sim, when, packet, true);
}
