/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A simulation's beginning and end, and what can be seen of it in between.
 */
#include "simulation/simulation.h"

#include <stdlib.h>
#include <string.h>

enum { LANES_MAX = 16, CACHE = 4 << 20 };

/* -- beginning and end ------------------------------------------------------------------------------------------------ */

static bool is_sound(const struct ibp_sim_network *network, const struct ibp_sim_job *job, uint32_t jobs,
                     const struct ibp_sim_client *client, uint32_t clients, const struct ibp_sim_step *step,
                     uint64_t steps)
{
    if (!network->hosts || network->width > 256 || !network->packet_bytes || jobs > UINT16_MAX || !jobs) return false;
    if (!network->lanes || network->lanes > LANES_MAX) return false;
    for (uint32_t end = 0; end < network->ends; end++)
        if (network->end_capacity[end] < network->packet_bytes || !network->end_delay[end] ||
            /* what lies there, and what waits for it at the ends of all ports */
            network->end_capacity[end] > UINT32_MAX / (network->width + 1) ||
            network->end_to[end] >= network->hosts + network->switches)
            return false;
    for (uint32_t i = 0; i < clients; i++) {
        if (client[i].host >= network->hosts || client[i].job >= jobs || !client[i].steps ||
            client[i].first_step + client[i].steps > steps || client[i].next >= client[i].steps ||
            (client[i].next && (client[i].arrivals || job[client[i].job].round)) ||
            network->host_end[client[i].host] == IBP_NONE)
            return false;
        for (uint32_t k = 0; k < client[i].steps; k++)
            if (step[client[i].first_step + k].awaits > client[i].arrivals) return false;
    }
    for (uint64_t i = 0; i < steps; i++)
        if (step[i].host >= network->hosts || network->host_end[step[i].host] == IBP_NONE ||
            (step[i].client != UINT32_MAX &&
             (step[i].client >= clients || step[i].slot >= client[step[i].client].arrivals)))
            return false;
    for (uint32_t i = 0; i < jobs; i++)
        if (job[i].jitter > 65536) return false;
    return true;
}

/* Zeroed, and each at the beginning of a cache line. */
static void *allocate_lines(size_t count, size_t size)
{
    void *made = aligned_alloc(64, count * size);

    if (made) memset(made, 0, count * size);
    return made;
}

static void *copy(const void *from, uint64_t count, size_t size)
{
    void *made = calloc(count ? count : 1, size);

    if (made && count) memcpy(made, from, count * size);
    return made;
}

static void set_up_end(struct ibp_sim *sim, int32_t end, uint32_t place)
{
    const struct ibp_sim_network *network = &sim->network;
    struct ibp_sim_queue *queue = &sim->queue[(uint64_t)place * network->lanes];

    queue->to = end == IBP_NONE ? IBP_SIM_NOTHING : network->end_to[end];
    for (uint32_t lane = 0; lane < network->lanes; lane++) queue[lane].first = queue[lane].last = IBP_SIM_NOTHING;
    if (end == IBP_NONE) return;
    queue->byte_ticks = network->end_byte_ticks[end];
    queue->delay = network->end_delay[end];
    queue->capacity = network->end_capacity[end];
    queue->place = place;
    sim->place_of_end[end] = place;
}

static void set_up_ends(struct ibp_sim *sim)
{
    const struct ibp_sim_network *network = &sim->network;

    for (uint32_t end = 0; end < network->ends; end++) sim->place_of_end[end] = IBP_SIM_NOTHING;
    for (uint32_t i = 0; i < network->switches * network->width; i++) set_up_end(sim, network->port_end[i], i);
    for (uint32_t host = 0; host < network->hosts; host++) {
        set_up_end(sim, network->host_end[host], ibp_sim_place_of_host(sim, host));
        sim->outbox[host].last = IBP_SIM_NOTHING;
    }
    for (uint32_t i = 0; i < IBP_SIM_WHEEL; i++) sim->bucket[i].first = IBP_SIM_NOTHING;
}

struct ibp_sim *ibp_sim_new(const struct ibp_sim_network *network, const struct ibp_sim_job *job, uint32_t jobs,
                            const struct ibp_sim_client *client, uint32_t clients, const struct ibp_sim_step *step,
                            uint64_t steps, uint64_t seed)
{
    struct ibp_sim *sim;
    uint64_t slots = 0;

    if (!is_sound(network, job, jobs, client, clients, step, steps)) return NULL;
    sim = calloc(1, sizeof *sim);
    if (!sim) return NULL;
    sim->network = *network;
    sim->jobs = jobs;
    sim->clients = clients;
    sim->free_packet = IBP_SIM_NOTHING;
    sim->seed = seed;
    sim->random = seed * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0x2545f4914f6cdd1d);
    if (!sim->random) sim->random = 1;
    sim->places = network->switches * network->width + network->hosts;
    sim->queue = allocate_lines((size_t)sim->places * network->lanes, sizeof *sim->queue);
    sim->is_large =
        (size_t)sim->places * network->lanes * sizeof *sim->queue + (size_t)network->switches * network->hosts > CACHE;
    sim->first_of_hosts = ibp_sim_place_of_host(sim, 0) * network->lanes;
    sim->place_of_end = calloc((size_t)network->ends + 1, sizeof *sim->place_of_end);
    sim->carried = calloc((size_t)sim->places * jobs, sizeof *sim->carried);
    sim->outbox = calloc(network->hosts, sizeof *sim->outbox);
    sim->bucket = calloc(IBP_SIM_WHEEL, sizeof *sim->bucket);
    sim->bucket_used = calloc(IBP_SIM_WHEEL / 64, sizeof *sim->bucket_used);
    sim->job = copy(job, jobs, sizeof *job);
    sim->step = copy(step, steps, sizeof *step);
    sim->process = calloc((size_t)clients + 1, sizeof *sim->process);
    for (uint32_t i = 0; i < clients; i++) slots += client[i].arrivals;
    sim->came = calloc(slots + 1, sizeof *sim->came);
    if (!sim->queue || !sim->place_of_end || !sim->carried || !sim->outbox || !sim->bucket || !sim->bucket_used ||
        !sim->job || !sim->step || !sim->process || !sim->came) {
        ibp_sim_free(sim);
        return NULL;
    }
    set_up_ends(sim);
    slots = 0;
    for (uint32_t i = 0; i < clients; i++) {
        sim->process[i].client = client[i];
        sim->process[i].first_slot = slots;
        slots += client[i].arrivals;
        sim->process[i].position = client[i].next;
        ibp_sim_schedule_process(sim, client[i].start, i);
    }
    if (sim->failed) {
        ibp_sim_free(sim);
        return NULL;
    }
    return sim;
}

void ibp_sim_free(struct ibp_sim *sim)
{
    if (!sim) return;
    free(sim->queue);
    free(sim->place_of_end);
    free(sim->carried);
    free(sim->came);
    free(sim->packet);
    free(sim->outbox);
    free(sim->bucket);
    free(sim->bucket_used);
    free(sim->later);
    free(sim->job);
    free(sim->step);
    free(sim->process);
    free(sim->freed);
    free(sim);
}

/* -- looking ---------------------------------------------------------------------------------------------------------- */

void ibp_sim_look(const struct ibp_sim *sim, struct ibp_sim_state *state)
{
    *state = sim->state;
}

void ibp_sim_ends(const struct ibp_sim *sim, uint64_t *bytes, uint64_t *busy, uint64_t *queued, uint64_t *most_queued)
{
    const uint32_t lanes = sim->network.lanes;

    for (uint32_t end = 0; end < sim->network.ends; end++) {
        const uint32_t place = sim->place_of_end[end];

        queued[end] = most_queued[end] = 0;
        for (uint32_t job = 0; job < sim->jobs; job++) {
            const struct ibp_sim_carried none = {0};
            const struct ibp_sim_carried *carried =
                place == IBP_SIM_NOTHING ? &none : &sim->carried[(uint64_t)place * sim->jobs + job];

            bytes[(uint64_t)end * sim->jobs + job] = carried->bytes;
            busy[(uint64_t)end * sim->jobs + job] = carried->ticks;
        }
        for (uint32_t lane = 0; lane < lanes && place != IBP_SIM_NOTHING; lane++) {
            const struct ibp_sim_queue *queue = &sim->queue[(uint64_t)place * lanes + lane];

            queued[end] += queue->taken + queue->waiting;
            if (queue->most > most_queued[end]) most_queued[end] = queue->most;
        }
    }
}

void ibp_sim_clients(const struct ibp_sim *sim, uint64_t *steps, uint64_t *bytes, uint64_t *last, uint8_t *busy)
{
    for (uint32_t i = 0; i < sim->clients; i++) {
        steps[i] = sim->process[i].done;
        bytes[i] = sim->process[i].bytes;
        last[i] = sim->process[i].last;
        busy[i] = sim->process[i].under_way || sim->process[i].waits_for_messages;
    }
}
