/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/whole_messages.h"

static uint64_t count_packets(const struct ibp_sim_path *path)
{
    return path->bytes <= path->packet ? 1 : path->bytes / path->packet;
}

/* Return the ticks from one packet to the next on the host's link. */
static uint64_t turn_of(const struct ibp_sim_queue *queue, const struct ibp_sim_path *path)
{
    return ibp_sim_ticks_of(queue, path->packet) + queue->gap;
}

/* Return the tick at which the first packet is at the first switch. */
static uint64_t first_arrival(const struct ibp_sim_queue *queue, const struct ibp_sim_path *path)
{
    return path->begun + ibp_sim_ticks_of(queue, path->packet) + queue->delay;
}

void ibp_sim_send_whole(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_path *path = &sim->path[number];
    struct ibp_sim_queue *queue = &sim->queue[path->queue[0]];
    struct ibp_sim_process *process = &sim->process[number];
    const uint64_t packets = count_packets(path);
    const uint32_t last = ibp_sim_take_packet(sim);

    if (last == IBP_SIM_NOTHING) return;
    path->begun = queue->free_at > sim->state.now ? queue->free_at : sim->state.now;
    path->last = last;
    queue->free_at = path->begun + packets * turn_of(queue, path);
    process->to_inject = 0;
    process->to_arrive = path->packet;
    sim->packet[last] = (struct ibp_sim_packet){
        .client = number,
        .queue = IBP_SIM_NOTHING,
        .host = path->host,
        .node = path->host,
        .ahead = IBP_SIM_NOTHING,
        .bytes = path->packet,
    };
    sim->state.packets += packets;
    ibp_sim_count_skipped(sim, packets * path->hops - 1);
    sim->state.bytes_sent += packets * path->packet;
    sim->state.bytes_arrived += packets * path->packet;
    ibp_sim_schedule_packet(sim, first_arrival(queue, path) + (packets - 1) * turn_of(queue, path) + path->rest[1],
                            last);
}

/* Return how many packets have reached the first switch. */
static uint64_t count_gone(const struct ibp_sim *sim, const struct ibp_sim_path *path)
{
    const struct ibp_sim_queue *queue = &sim->queue[path->queue[0]];
    const uint64_t first = first_arrival(queue, path), packets = count_packets(path);
    const uint64_t gone = sim->state.now < first ? 0 : (sim->state.now - first) / turn_of(queue, path) + 1;

    return gone < packets ? gone : packets;
}

/* Put a packet into its host's queue that arrives at the first switch at a known tick. */
static void place(struct ibp_sim *sim, uint32_t process, uint64_t arrival)
{
    const struct ibp_sim_path *path = &sim->path[process];
    const uint32_t number = ibp_sim_take_packet(sim);

    if (number == IBP_SIM_NOTHING) return;
    sim->packet[number] = (struct ibp_sim_packet){
        .client = process,
        .queue = path->queue[0],
        .host = path->host,
        .node = sim->queue[path->queue[0]].to,
        .ahead = path->queue[1],
        .bytes = path->packet,
        .hop = 1,
        .job = (uint16_t)sim->process[process].client.job,
    };
    ibp_sim_schedule_packet(sim, arrival, number);
}

void ibp_sim_break_up(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_path *path = &sim->path[number];
    struct ibp_sim_queue *queue = &sim->queue[path->queue[0]];
    struct ibp_sim_process *process = &sim->process[number];
    const uint64_t packets = count_packets(path), gone = count_gone(sim, path), left = packets - gone;
    const uint64_t fit = queue->capacity / path->packet, queued = left < fit ? left : fit;
    const uint64_t first = first_arrival(queue, path), turn = turn_of(queue, path);
    const uint32_t last = path->last;

    path->last = IBP_SIM_NOTHING;
    if (!left) return; /* its event at the host is right */
    sim->packet[last].client = IBP_SIM_NOTHING;
    sim->state.in_flight--;
    ibp_sim_count_skipped(sim, 1 - left * path->hops);
    sim->state.bytes_arrived -= left * path->packet;
    sim->state.packets -= left - queued;
    sim->state.bytes_sent -= (left - queued) * path->packet;
    process->to_arrive = left * path->packet;
    process->to_inject = (left - queued) * path->packet;
    for (uint64_t i = gone; i < gone + queued; i++) place(sim, number, first + i * turn);
    queue->taken = (uint32_t)queued * path->packet;
    queue->free_at = path->begun + (gone + queued) * turn;
    if (!process->to_inject) return;
    process->next_at_host = number;
    sim->outbox[process->client.host].last = number;
}
