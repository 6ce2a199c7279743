/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Who waits for whom, and packets that never move again while others go on.
 */
#include "simulation/simulation.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t count_queues(const struct ibp_sim *sim)
{
    return (uint64_t)sim->places * sim->network.lanes;
}

/* Of each queue's room, the bytes whose packets wait at the next one. */
static bool add_up_waiting(const struct ibp_sim *sim, uint32_t *waits)
{
    bool any = false;

    for (uint64_t i = 0; i < count_queues(sim); i++)
        for (uint32_t at = sim->queue[i].first; at != IBP_SIM_NOTHING; at = sim->packet[at].next) {
            waits[sim->packet[at].queue] += sim->packet[at].bytes;
            any = true;
        }
    return any;
}

/* Queues that get room again: a packet of theirs is on its way, or waits for such a queue, where all have their turn. */
static void mark_live(const struct ibp_sim *sim, const uint32_t *waits, uint8_t *live, uint32_t *reached)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < count_queues(sim); i++)
        if (sim->queue[i].taken > waits[i]) {
            live[i] = 1;
            reached[count++] = (uint32_t)i;
        }
    while (count) {
        const struct ibp_sim_queue *queue = &sim->queue[reached[--count]];

        for (uint32_t at = queue->first; at != IBP_SIM_NOTHING; at = sim->packet[at].next) {
            const uint32_t held = sim->packet[at].queue;

            if (live[held]) continue;
            live[held] = 1;
            reached[count++] = held;
        }
    }
}

/* [queue], whether it gets room again or none waits for it; NULL when memory is short, or when no packet waits. */
static uint8_t *find_live(const struct ibp_sim *sim, int *failed)
{
    const uint64_t queues = count_queues(sim);
    uint32_t *waits = calloc(queues, sizeof *waits), *reached = malloc(queues * sizeof *reached);
    uint8_t *live = calloc(queues, sizeof *live);

    *failed = waits && reached && live ? 0 : -ENOMEM;
    if (!*failed && add_up_waiting(sim, waits)) {
        mark_live(sim, waits, live, reached);
    } else {
        free(live);
        live = NULL;
    }
    free(waits);
    free(reached);
    return live;
}

bool ibp_sim_is_stuck(struct ibp_sim *sim)
{
    uint8_t *live = find_live(sim, &sim->failed);
    bool found = false;

    for (uint64_t i = 0; live && i < count_queues(sim) && !found; i++)
        found = sim->queue[i].first != IBP_SIM_NOTHING && !live[i];
    free(live);
    return found;
}

uint64_t ibp_sim_waits(const struct ibp_sim *sim, uint32_t only_stuck, uint32_t *holds, uint32_t *wants,
                       uint64_t capacity)
{
    const uint32_t lanes = sim->network.lanes;
    uint32_t *end_of_place = calloc(sim->places, sizeof *end_of_place);
    uint64_t count = 0;
    int failed = 0;
    uint8_t *live = only_stuck ? find_live(sim, &failed) : NULL;

    for (uint32_t end = 0; end < sim->network.ends && end_of_place; end++)
        if (sim->place_of_end[end] != IBP_SIM_NOTHING) end_of_place[sim->place_of_end[end]] = end;
    for (uint64_t i = 0; i < count_queues(sim) && end_of_place && !failed; i++) {
        if (live && live[i]) continue;
        for (uint32_t at = sim->queue[i].first; at != IBP_SIM_NOTHING; at = sim->packet[at].next, count++)
            if (count < capacity) {
                holds[count] = end_of_place[sim->packet[at].queue / lanes];
                wants[count] = end_of_place[i / lanes];
            }
    }
    free(end_of_place);
    free(live);
    return count;
}
