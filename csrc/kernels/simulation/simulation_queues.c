/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Queues of link ends: admission, credits, the way of a packet.
 */
#include "simulation/simulation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t ticks_of(const struct ibp_sim_queue *end, uint32_t bytes)
{
    return (bytes * end->byte_ticks + UINT32_MAX) >> 32;
}

/* What the lanes of a queue's end share. */
static struct ibp_sim_queue *end_of(struct ibp_sim *sim, uint32_t queue, unsigned lane)
{
    return &sim->queue[queue - lane];
}

static bool has_room(const struct ibp_sim_queue *queue, const struct ibp_sim_queue *end, uint32_t bytes)
{
    return queue->taken + bytes <= end->capacity;
}

static void note_most(struct ibp_sim_queue *queue)
{
    if (queue->taken + queue->waiting > queue->most) queue->most = queue->taken + queue->waiting;
}

static uint32_t queue_of_port(const struct ibp_sim *sim, uint32_t at, uint32_t port, unsigned lane)
{
    return ibp_sim_place_of_port(sim, at, port) * sim->network.lanes + lane;
}

/* The queue that tables have for a packet at a node. Looked up when it sets out, where nothing waits for the answer yet. */
static uint32_t look_up(const struct ibp_sim *sim, uint32_t node, const struct ibp_sim_packet *packet)
{
    const struct ibp_sim_network *network = &sim->network;

    if (node < network->hosts) return IBP_SIM_NOTHING;
    const uint32_t at = node - network->hosts;
    const uint32_t port = network->egress[(uint64_t)at * network->hosts + packet->host];
    return port < network->width ? queue_of_port(sim, at, port, packet->lane) : IBP_SIM_NOTHING;
}

/* Take room in a queue and a turn on its link; the packet arrives when it is through. */
static void admit(struct ibp_sim *sim, uint32_t into, uint32_t number)
{
    struct ibp_sim_packet *packet = &sim->packet[number];
    struct ibp_sim_queue *queue = &sim->queue[into], *end = end_of(sim, into, packet->lane);
    struct ibp_sim_carried *carried = &sim->carried[(uint64_t)end->place * sim->jobs + packet->job];
    const uint64_t ticks = ticks_of(end, packet->bytes);

    queue->taken += packet->bytes;
    assert(queue->taken <= end->capacity);
    note_most(queue);
    if (end->free_at < sim->state.now) end->free_at = sim->state.now;
    end->free_at += ticks;
    carried->bytes += packet->bytes;
    carried->ticks += ticks;
    packet->queue = into;
    packet->node = end->to;
    packet->ahead = look_up(sim, end->to, packet);
    ibp_sim_schedule_packet(sim, end->free_at + end->delay, number);
}

static void wait_for(struct ibp_sim *sim, uint32_t wanted, uint32_t number)
{
    struct ibp_sim_packet *packet = &sim->packet[number];
    struct ibp_sim_queue *queue = &sim->queue[wanted];

    packet->next = IBP_SIM_NOTHING;
    if (queue->first == IBP_SIM_NOTHING)
        queue->first = number;
    else
        sim->packet[queue->last].next = number;
    queue->last = number;
    queue->waiting += packet->bytes;
    note_most(queue);
}

static bool is_hosts(const struct ibp_sim *sim, uint32_t queue)
{
    return queue >= sim->first_of_hosts;
}

/* Give room back, and note where somebody may wait for it: packets, or a host with more to send. */
static void note_freed(struct ibp_sim *sim, uint32_t number, uint32_t bytes)
{
    struct ibp_sim_queue *queue = &sim->queue[number];

    assert(queue->taken >= bytes);
    queue->taken -= bytes;
    if (queue->first == IBP_SIM_NOTHING && !is_hosts(sim, number)) return;
    if (sim->freed_count == sim->freed_room) {
        const uint64_t room = 2 * sim->freed_room + 64;
        uint32_t *larger = realloc(sim->freed, room * sizeof *larger);

        if (!larger) {
            sim->failed = -ENOMEM;
            return;
        }
        sim->freed = larger;
        sim->freed_room = room;
    }
    sim->freed[sim->freed_count++] = number;
}

/* Let packets in wherever room was freed. Each that moves on frees room behind it, which is why this goes upstream. */
static void let_in(struct ibp_sim *sim)
{
    while (sim->freed_count) {
        const uint32_t number = sim->freed[--sim->freed_count];
        struct ibp_sim_queue *queue = &sim->queue[number];

        while (queue->first != IBP_SIM_NOTHING) {
            const uint32_t next = queue->first;
            struct ibp_sim_packet *packet = &sim->packet[next];
            const uint32_t behind = packet->queue;

            if (!has_room(queue, end_of(sim, number, packet->lane), packet->bytes)) break;
            queue->first = packet->next;
            queue->waiting -= packet->bytes;
            admit(sim, number, next);
            note_freed(sim, behind, packet->bytes);
        }
        if (is_hosts(sim, number)) ibp_sim_inject(sim, (number - sim->first_of_hosts) / sim->network.lanes);
    }
}

static void free_room(struct ibp_sim *sim, uint32_t queue, uint32_t bytes)
{
    note_freed(sim, queue, bytes);
    let_in(sim);
}

/* -- the way of a packet ---------------------------------------------------------------------------------------------- */

/* The least occupied of the ports on shortest ways, any of them at a tie. */
static uint32_t choose_queue(struct ibp_sim *sim, uint32_t at, uint32_t leaf, unsigned lane)
{
    const struct ibp_sim_network *network = &sim->network;
    const uint32_t words = (network->width + 63) / 64;
    const uint64_t *minimal = &network->minimal[(at * (uint64_t)network->switches + leaf) * words];
    uint32_t least = UINT32_MAX, ties = 0, chosen = IBP_SIM_NOTHING;

    for (uint32_t word = 0; word < words; word++)
        for (uint64_t ports = minimal[word]; ports; ports &= ports - 1) {
            const uint32_t port = word * 64 + (uint32_t)__builtin_ctzll(ports);
            const uint32_t number = queue_of_port(sim, at, port, lane);
            const uint32_t queued = sim->queue[number].taken + sim->queue[number].waiting;

            if (queued > least) continue;
            if (queued < least) ties = 0;
            least = queued;
            if (ibp_sim_random(sim) % ++ties == 0) chosen = number;
        }
    return chosen;
}

/* The queue by which a packet leaves a switch, or IBP_SIM_NOTHING. */
static uint32_t next_queue(struct ibp_sim *sim, uint32_t at, const struct ibp_sim_packet *packet)
{
    const struct ibp_sim_network *network = &sim->network;
    const uint32_t leaf = network->host_leaf[packet->host];

    if (network->minimal && at != leaf) return choose_queue(sim, at, leaf, packet->lane);
    if (packet->ahead == IBP_SIM_NOTHING) return IBP_SIM_NOTHING;
    return end_of(sim, packet->ahead, packet->lane)->to == IBP_SIM_NOTHING ? IBP_SIM_NOTHING : packet->ahead;
}

static void free_packet(struct ibp_sim *sim, uint32_t number)
{
    sim->packet[number].next = sim->free_packet;
    sim->free_packet = number;
    sim->state.in_flight--;
}

void ibp_sim_prefetch_queues(const struct ibp_sim *sim, uint32_t number)
{
    const struct ibp_sim_packet *packet = &sim->packet[number];

    __builtin_prefetch(&sim->queue[packet->queue], 1);
    if (packet->ahead != IBP_SIM_NOTHING) __builtin_prefetch(&sim->queue[packet->ahead], 1);
    if (packet->node < sim->network.hosts) __builtin_prefetch(&sim->process[packet->client], 1);
}

void ibp_sim_prefetch_waiting(const struct ibp_sim *sim, uint32_t number)
{
    const uint32_t first = sim->queue[sim->packet[number].queue].first;

    if (first != IBP_SIM_NOTHING) __builtin_prefetch(&sim->packet[first], 1);
}

static void stop_unrouted(struct ibp_sim *sim, uint32_t at, uint32_t host)
{
    sim->state.stopped = IBP_SIM_UNROUTED;
    sim->state.switch_without_route = at;
    sim->state.host_without_route = host;
}

void ibp_sim_arrive(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_packet *packet = &sim->packet[number];
    const uint32_t behind = packet->queue, bytes = packet->bytes;
    const uint32_t node = packet->node;

    sim->state.packet_hops++;
    if (node < sim->network.hosts) {
        const uint32_t process = packet->client;

        if (node != packet->host) {
            stop_unrouted(sim, sim->network.host_leaf[node], packet->host);
            return;
        }
        sim->state.bytes_arrived += bytes;
        free_packet(sim, number);
        free_room(sim, behind, bytes);
        ibp_sim_deliver(sim, process, node, bytes);
        return;
    }
    const uint32_t ahead = next_queue(sim, node - sim->network.hosts, packet);
    if (ahead == IBP_SIM_NOTHING) {
        stop_unrouted(sim, node - sim->network.hosts, packet->host);
        return;
    }
    const struct ibp_sim_queue *queue = &sim->queue[ahead];
    if (queue->first != IBP_SIM_NOTHING || !has_room(queue, end_of(sim, ahead, packet->lane), bytes)) {
        wait_for(sim, ahead, number);
        return;
    }
    admit(sim, ahead, number);
    free_room(sim, behind, bytes);
}

/* -- hosts ------------------------------------------------------------------------------------------------------------ */

static bool grow_packets(struct ibp_sim *sim)
{
    const uint32_t room = sim->packet_room ? 2 * sim->packet_room : 1 << 16;
    struct ibp_sim_packet *larger = aligned_alloc(64, (size_t)room * sizeof *larger); /* which realloc would not keep */

    if (!larger) {
        sim->failed = -ENOMEM;
        return false;
    }
    if (sim->packets) memcpy(larger, sim->packet, sim->packets * sizeof *larger);
    free(sim->packet);
    sim->packet = larger;
    sim->packet_room = room;
    return true;
}

static uint32_t take_packet(struct ibp_sim *sim)
{
    uint32_t number = sim->free_packet;

    if (number != IBP_SIM_NOTHING) {
        sim->free_packet = sim->packet[number].next;
        return number;
    }
    if (sim->packets == sim->packet_room && !grow_packets(sim)) return IBP_SIM_NOTHING;
    return sim->packets++;
}

static unsigned choose_lane(const struct ibp_sim *sim, uint32_t from, uint32_t to)
{
    const struct ibp_sim_network *network = &sim->network;

    if (!network->lane) return 0;
    return network->lane[(uint64_t)network->host_leaf[from] * network->switches + network->host_leaf[to]];
}

void ibp_sim_inject(struct ibp_sim *sim, uint32_t host)
{
    struct ibp_sim_outbox *outbox = &sim->outbox[host];
    const uint32_t place = ibp_sim_place_of_host(sim, host);

    while (outbox->last != IBP_SIM_NOTHING) {
        const uint32_t number = sim->process[outbox->last].next_at_host;
        struct ibp_sim_process *process = &sim->process[number];
        const uint32_t to = process->answering ? process->client.host : ibp_sim_step_of(sim, process)->host;
        const unsigned lane = choose_lane(sim, host, to);
        const uint32_t bytes =
            process->to_inject < sim->network.packet_bytes ? (uint32_t)process->to_inject : sim->network.packet_bytes;
        const uint32_t queue = place * sim->network.lanes + lane;
        uint32_t packet;

        if (!has_room(&sim->queue[queue], end_of(sim, queue, lane), bytes)) return;
        packet = take_packet(sim);
        if (packet == IBP_SIM_NOTHING) return;
        sim->packet[packet] = (struct ibp_sim_packet){
            .client = number,
            .host = to,
            .bytes = bytes,
            .lane = (uint8_t)lane,
            .job = (uint16_t)process->client.job,
        };
        sim->state.packets++;
        sim->state.in_flight++;
        sim->state.bytes_sent += bytes;
        process->to_inject -= bytes;
        /* In turn: this one goes to the back, or leaves the ring when it has no more. */
        if (process->to_inject)
            outbox->last = number;
        else if (number == outbox->last)
            outbox->last = IBP_SIM_NOTHING;
        else
            sim->process[outbox->last].next_at_host = process->next_at_host;
        admit(sim, queue, packet);
    }
}
