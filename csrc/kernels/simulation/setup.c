/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/adaptive.h"
#include "simulation/agenda.h"

#include <stdlib.h>
#include <string.h>

enum { LANES_MAX = 16, KINDS_COMPARED = 64 };

/* The arguments of ibp_sim_new that describe the workload. */
struct workload {
    const struct ibp_sim_job *job;
    const struct ibp_sim_client *client;
    const struct ibp_sim_step *step;
    uint32_t jobs, clients;
    uint64_t steps;
};

static bool is_valid_network(const struct ibp_sim_network *network)
{
    if (!network->hosts || network->width > 256 || !network->packet_bytes) return false;
    if (network->packet_bytes >= IBP_SIM_PACKET_LIMIT || network->switches >= IBP_SIM_CHOOSE) return false;
    if (((uint64_t)network->switches * network->width + network->hosts) * network->lanes >= IBP_SIM_QUEUES)
        return false;
    if (!network->lanes || network->lanes > LANES_MAX) return false;
    for (uint32_t end = 0; end < network->ends; end++)
        if (network->end_capacity[end] < network->packet_bytes || !network->end_delay[end] ||
            /* The sum of the bytes in a queue and of the waiting bytes at all ports of the switch must fit into 31
             * bits. */
            network->end_capacity[end] > INT32_MAX / (network->width + 1) ||
            network->end_to[end] >= network->hosts + network->switches)
            return false;
    return true;
}

static bool is_linked_host(const struct ibp_sim_network *network, uint32_t host)
{
    return host < network->hosts && network->host_end[host] != IBP_NONE;
}

static bool is_valid_client(const struct ibp_sim_network *network, const struct workload *all,
                            const struct ibp_sim_client *client)
{
    if (!is_linked_host(network, client->host) || client->job >= all->jobs || !client->steps) return false;
    if (client->first_step + client->steps > all->steps || client->next >= client->steps) return false;
    if (client->next && (client->arrivals || all->job[client->job].round)) return false;
    for (uint32_t i = 0; i < client->steps; i++)
        if (all->step[client->first_step + i].awaits > client->arrivals) return false;
    return true;
}

static bool is_valid_step(const struct ibp_sim_network *network, const struct workload *all,
                          const struct ibp_sim_step *step)
{
    if (!is_linked_host(network, step->host)) return false;
    return step->client == IBP_SIM_NOBODY ||
           (step->client < all->clients && step->slot < all->client[step->client].arrivals);
}

static bool is_valid(const struct ibp_sim_network *network, const struct workload *all)
{
    if (!all->jobs || all->jobs > UINT16_MAX || !is_valid_network(network)) return false;
    for (uint32_t i = 0; i < all->clients; i++)
        if (!is_valid_client(network, all, &all->client[i])) return false;
    for (uint64_t i = 0; i < all->steps; i++)
        if (!is_valid_step(network, all, &all->step[i])) return false;
    for (uint32_t i = 0; i < all->jobs; i++)
        if (all->job[i].jitter > 65536) return false;
    return true;
}

static void *copy(const void *from, uint64_t count, size_t size)
{
    void *made = calloc(count ? count : 1, size);

    if (made && count) memcpy(made, from, count * size);
    return made;
}

/* Return the index of a kind of transmit port in `kind`. If the kind is not among the first KINDS_COMPARED elements,
 * append it. */
static uint32_t number_kind(struct ibp_sim *sim, const struct ibp_sim_kind *kind)
{
    const uint32_t compared = sim->kinds < KINDS_COMPARED ? sim->kinds : KINDS_COMPARED;
    uint32_t number = 0;

    while (number < compared &&
           (sim->kind[number].byte_ticks != kind->byte_ticks || sim->kind[number].delay != kind->delay ||
            sim->kind[number].capacity != kind->capacity || sim->kind[number].gap != kind->gap))
        number++;
    if (number < compared) return number;
    sim->kind[sim->kinds] = *kind;
    return sim->kinds++;
}

static void set_up_end(struct ibp_sim *sim, int32_t end, uint32_t port)
{
    const struct ibp_sim_network *network = &sim->network;
    struct ibp_sim_queue *queue = &sim->queue[(uint64_t)port * network->lanes];

    queue->to = IBP_SIM_NOTHING;
    if (end == IBP_NONE) return;
    queue->to = network->end_to[end];
    const struct ibp_sim_kind kind = {.byte_ticks = network->end_byte_ticks[end],
                                      .delay = network->end_delay[end],
                                      .capacity = network->end_capacity[end],
                                      .gap = network->end_gap[end]};
    const uint32_t number = number_kind(sim, &kind);
    for (uint32_t lane = 0; lane < network->lanes; lane++) queue[lane].kind = number;
    sim->port_of_end[end] = port;
}

static void set_up_ends(struct ibp_sim *sim)
{
    const struct ibp_sim_network *network = &sim->network;

    sim->capacity = network->ends ? network->end_capacity[0] : 0;
    for (uint32_t end = 0; end < network->ends; end++) {
        sim->port_of_end[end] = IBP_SIM_NOTHING;
        if (network->end_capacity[end] != sim->capacity) sim->capacity = 0;
    }
    for (uint32_t at = 0; at < network->switches; at++)
        for (uint32_t port = 0; port < sim->width; port++)
            set_up_end(sim, network->port_end[(uint64_t)at * network->width + port],
                       ibp_sim_port_of_switch(sim, at, port));
    for (uint32_t host = 0; host < network->hosts; host++) {
        set_up_end(sim, network->host_end[host], ibp_sim_port_of_host(sim, host));
        sim->outbox[host].last = IBP_SIM_NOTHING;
    }
    sim->free_chunk = IBP_SIM_NOTHING;
    for (unsigned bits = 0; bits < 32; bits++) sim->free_ring[bits] = IBP_SIM_NOTHING;
}

static bool allocate(struct ibp_sim *sim, const struct workload *all)
{
    const struct ibp_sim_network *network = &sim->network;
    uint64_t slots = 0;

    for (uint32_t i = 0; i < all->clients; i++) slots += all->client[i].arrivals;
    sim->queue = ibp_sim_allocate(ibp_sim_count_queues(sim), sizeof *sim->queue);
    sim->kind = calloc((size_t)network->ends + 1, sizeof *sim->kind);
    sim->port_of_end = calloc((size_t)network->ends + 1, sizeof *sim->port_of_end);
    sim->carried = ibp_sim_allocate((uint64_t)sim->ports * all->jobs, sizeof *sim->carried);
    sim->outbox = calloc(network->hosts, sizeof *sim->outbox);
    sim->bucket = calloc(IBP_SIM_WHEEL, sizeof *sim->bucket);
    sim->bucket_used = calloc(IBP_SIM_WHEEL / 64, sizeof *sim->bucket_used);
    sim->job = copy(all->job, all->jobs, sizeof *sim->job);
    sim->step = copy(all->step, all->steps, sizeof *sim->step);
    sim->process = ibp_sim_allocate(all->clients, sizeof *sim->process);
    sim->path = ibp_sim_allocate(all->clients, sizeof *sim->path);
    sim->received = calloc(slots + 1, sizeof *sim->received);
    return sim->queue && sim->kind && sim->path && sim->port_of_end && sim->carried && sim->outbox && sim->bucket &&
           sim->bucket_used && sim->job && sim->step && sim->process && sim->received;
}

static void set_up_processes(struct ibp_sim *sim, const struct ibp_sim_client *client)
{
    uint64_t slots = 0;

    for (uint32_t i = 0; i < sim->clients; i++) {
        sim->process[i].client = client[i];
        sim->path[i].job = (uint16_t)client[i].job;
        sim->path[i].from = sim->path[i].to = IBP_SIM_NOTHING;
        sim->process[i].first_slot = slots;
        slots += client[i].arrivals;
        sim->process[i].position = client[i].next;
        ibp_sim_schedule_process(sim, client[i].start, i);
    }
}

/* Return 1 + the largest port number that has a link on any switch. */
static uint32_t count_used_ports(const struct ibp_sim_network *network)
{
    uint32_t width = 0;

    for (uint64_t i = 0; i < (uint64_t)network->switches * network->width; i++)
        if (network->port_end[i] != IBP_NONE && i % network->width >= width) width = (uint32_t)(i % network->width) + 1;
    return width;
}

struct ibp_sim *ibp_sim_new(const struct ibp_sim_network *network, const struct ibp_sim_job *job, uint32_t jobs,
                            const struct ibp_sim_client *client, uint32_t clients, const struct ibp_sim_step *step,
                            uint64_t steps, uint64_t seed)
{
    const struct workload all = {job, client, step, jobs, clients, steps};
    struct ibp_sim *sim = is_valid(network, &all) ? calloc(1, sizeof *sim) : NULL;

    if (!sim) return NULL;
    sim->network = *network;
    sim->jobs = jobs;
    sim->clients = clients;
    sim->seed = seed;
    sim->random = seed * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0x2545f4914f6cdd1d);
    if (!sim->random) sim->random = 1;
    sim->width = count_used_ports(network);
    sim->ports = network->switches * sim->width + network->hosts;
    sim->search_hops = 16 * ibp_sim_count_queues(sim);
    sim->first_of_hosts = ibp_sim_port_of_host(sim, 0) * network->lanes;
    if (allocate(sim, &all) && (!network->minimal || ibp_sim_set_up_adaptive(sim))) {
        set_up_ends(sim);
        set_up_processes(sim, client);
        if (!sim->failed) return sim;
    }
    ibp_sim_free(sim);
    return NULL;
}

void ibp_sim_free(struct ibp_sim *sim)
{
    if (!sim) return;
    free(sim->queue);
    free(sim->path);
    free(sim->use);
    free(sim->port_of_end);
    free(sim->carried);
    free(sim->received);
    free(sim->kind);
    free(sim->waiter);
    free(sim->arrival);
    free(sim->queued);
    free(sim->choice);
    free(sim->choice_row);
    free(sim->choices);
    free(sim->number_of_leaf);
    free(sim->slot);
    free(sim->outbox);
    free(sim->bucket);
    free(sim->bucket_used);
    free(sim->heap);
    free(sim->job);
    free(sim->step);
    free(sim->process);
    free(sim->freed);
    free(sim);
}
