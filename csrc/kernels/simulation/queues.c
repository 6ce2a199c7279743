/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/queues.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- packets ------------------------------------------------------------------------------------------------------- */

static bool grow_packets(struct ibp_sim *sim)
{
    const uint32_t capacity = sim->packet_capacity ? 2 * sim->packet_capacity : 1 << 16;
    /* realloc would not keep the alignment. */
    struct ibp_sim_packet *larger = aligned_alloc(64, (size_t)capacity * sizeof *larger);

    if (!larger) {
        sim->failed = -ENOMEM;
        return false;
    }
    if (sim->packets) memcpy(larger, sim->packet, sim->packets * sizeof *larger);
    free(sim->packet);
    sim->packet = larger;
    sim->packet_capacity = capacity;
    return true;
}

uint32_t ibp_sim_take_packet(struct ibp_sim *sim)
{
    uint32_t number = sim->free_packet;

    if (number != IBP_SIM_NOTHING)
        sim->free_packet = sim->packet[number].next;
    else if (sim->packets < sim->packet_capacity || grow_packets(sim))
        number = sim->packets++;
    if (number != IBP_SIM_NOTHING) sim->state.in_flight++;
    return number;
}

/* -- routing ------------------------------------------------------------------------------------------------------- */

uint32_t ibp_sim_choose_queue(struct ibp_sim *sim, uint32_t at, uint32_t leaf, unsigned lane)
{
    const struct ibp_sim_network *network = &sim->network;
    const uint32_t words = (network->width + 63) / 64;
    const uint64_t *minimal = &network->minimal[(at * (uint64_t)network->switches + leaf) * words];
    uint32_t least = UINT32_MAX, ties = 0, chosen = IBP_SIM_NOTHING;

    for (uint32_t word = 0; word < words; word++)
        for (uint64_t ports = minimal[word]; ports; ports &= ports - 1) {
            const uint32_t port = word * 64 + (uint32_t)__builtin_ctzll(ports);
            const uint32_t number = ibp_sim_queue_of_port(sim, at, port, lane);
            const uint32_t queued = sim->queue[number].taken + sim->queue[number].waiting;

            if (queued > least) continue;
            if (queued < least) ties = 0;
            least = queued;
            if (ibp_sim_random(sim) % ++ties == 0) chosen = number;
        }
    return chosen;
}

/* -- queues -------------------------------------------------------------------------------------------------------- */

bool ibp_sim_grow_freed(struct ibp_sim *sim)
{
    const uint64_t capacity = 2 * sim->freed_capacity + 64;
    uint32_t *larger = realloc(sim->freed, capacity * sizeof *larger);

    if (!larger) {
        sim->failed = -ENOMEM;
        return false;
    }
    sim->freed = larger;
    sim->freed_capacity = capacity;
    return true;
}

/* -- deadlock ------------------------------------------------------------------------------------------------------ */

/* Compute how many bytes of each queue's buffer belong to packets that wait at their next queue. */
static bool sum_waiting(const struct ibp_sim *sim, uint32_t *waits)
{
    bool any = false;

    for (uint64_t i = 0; i < ibp_sim_count_queues(sim); i++)
        for (uint32_t at = sim->queue[i].first; at != IBP_SIM_NOTHING; at = sim->packet[at].next) {
            waits[sim->packet[at].queue] += sim->packet[at].bytes;
            any = true;
        }
    return any;
}

/* Return whether a queue has buffer for the packet that waits for it: it is still to arrive. */
static bool serves_later(const struct ibp_sim *sim, const struct ibp_sim_queue *queue)
{
    return sim->path && queue->first != IBP_SIM_NOTHING &&
           queue->taken + sim->packet[queue->first].bytes <= queue->capacity;
}

/* Mark queues whose buffer becomes free: a packet of theirs is in flight, or waits for a marked queue, which admits in
 * turn. */
static void mark_live(const struct ibp_sim *sim, const uint32_t *waits, uint8_t *live, uint32_t *reached)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < ibp_sim_count_queues(sim); i++)
        if (sim->queue[i].taken > waits[i] || serves_later(sim, &sim->queue[i])) {
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

/* Return [queue], 1 where buffer becomes free or no packet waits for it; NULL when memory is short, or when no packet
 * waits anywhere. */
static uint8_t *find_live(const struct ibp_sim *sim, int *failed)
{
    const uint64_t queues = ibp_sim_count_queues(sim);
    uint32_t *waits = calloc(queues, sizeof *waits), *reached = malloc(queues * sizeof *reached);
    uint8_t *live = calloc(queues, sizeof *live);

    *failed = waits && reached && live ? 0 : -ENOMEM;
    if (!*failed && sum_waiting(sim, waits)) {
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

    for (uint64_t i = 0; live && i < ibp_sim_count_queues(sim) && !found; i++)
        found = sim->queue[i].first != IBP_SIM_NOTHING && !live[i];
    free(live);
    return found;
}

uint64_t ibp_sim_waits(const struct ibp_sim *sim, uint32_t only_stuck, uint32_t *holds, uint32_t *wants,
                       uint64_t capacity)
{
    const uint32_t lanes = sim->network.lanes;
    uint32_t *end_of_port = calloc(sim->ports, sizeof *end_of_port);
    uint64_t count = 0;
    int failed = 0;
    uint8_t *live = only_stuck ? find_live(sim, &failed) : NULL;

    for (uint32_t end = 0; end < sim->network.ends && end_of_port; end++)
        if (sim->port_of_end[end] != IBP_SIM_NOTHING) end_of_port[sim->port_of_end[end]] = end;
    for (uint64_t i = 0; i < ibp_sim_count_queues(sim) && end_of_port && !failed; i++) {
        if (live && live[i]) continue;
        for (uint32_t at = sim->queue[i].first; at != IBP_SIM_NOTHING; at = sim->packet[at].next, count++)
            if (count < capacity) {
                holds[count] = end_of_port[sim->packet[at].queue / lanes];
                wants[count] = end_of_port[i / lanes];
            }
    }
    free(end_of_port);
    free(live);
    return count;
}
