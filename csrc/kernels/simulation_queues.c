/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Queues of link ends: admission, credits, the way of a packet.
 */
#include "simulation.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static struct ibp_sim_lane *lane_of(struct ibp_sim *sim, uint32_t end, unsigned lane)
{
    return &sim->lane[(uint64_t)end * sim->network.lanes + lane];
}

static uint64_t ticks_of(const struct ibp_sim_end *end, uint32_t bytes)
{
    return (bytes * end->byte_ticks + UINT32_MAX) >> 32;
}

/* Take room at an end and its turn on the link; the packet arrives when it is through. */
static void admit(struct ibp_sim *sim, uint32_t end_number, uint32_t number)
{
    struct ibp_sim_packet *packet = &sim->packet[number];
    struct ibp_sim_end *end = &sim->end[end_number];
    struct ibp_sim_lane *lane = lane_of(sim, end_number, packet->lane);
    struct ibp_sim_carried *carried = &sim->carried[(uint64_t)end_number * sim->jobs + packet->job];
    const uint64_t ticks = ticks_of(end, packet->bytes);

    lane->taken += packet->bytes;
    assert(lane->taken <= end->capacity);
    if (lane->taken + lane->waiting > end->most_queued) end->most_queued = lane->taken + lane->waiting;
    if (end->free_at < sim->state.now) end->free_at = sim->state.now;
    end->free_at += ticks;
    carried->bytes += packet->bytes;
    carried->ticks += ticks;
    packet->end = end_number;
    ibp_sim_schedule_packet(sim, end->free_at + end->delay, number);
}

static void wait_for(struct ibp_sim *sim, uint32_t end, uint32_t number)
{
    struct ibp_sim_packet *packet = &sim->packet[number];
    struct ibp_sim_lane *lane = lane_of(sim, end, packet->lane);

    packet->next = IBP_SIM_NOTHING;
    if (lane->first == IBP_SIM_NOTHING)
        lane->first = number;
    else
        sim->packet[lane->last].next = number;
    lane->last = number;
    lane->waiting += packet->bytes;
    if (lane->taken + lane->waiting > sim->end[end].most_queued)
        sim->end[end].most_queued = lane->taken + lane->waiting;
}

/* Give room back, and note where somebody may wait for it: packets, or a host with more to send. */
static void note_freed(struct ibp_sim *sim, uint32_t end, unsigned lane_number, uint32_t bytes)
{
    struct ibp_sim_lane *lane = lane_of(sim, end, lane_number);

    assert(lane->taken >= bytes);
    lane->taken -= bytes;
    if (lane->first == IBP_SIM_NOTHING && sim->end[end].from_host == IBP_SIM_NOTHING) return;
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
    sim->freed[sim->freed_count++] = end * sim->network.lanes + lane_number;
}

/* Let packets in wherever room was freed. Each that moves on frees room behind it, which is why this goes upstream. */
static void let_in(struct ibp_sim *sim)
{
    while (sim->freed_count) {
        const uint32_t number = sim->freed[--sim->freed_count], end = number / sim->network.lanes;
        struct ibp_sim_lane *lane = &sim->lane[number];

        while (lane->first != IBP_SIM_NOTHING) {
            const uint32_t next = lane->first;
            struct ibp_sim_packet *packet = &sim->packet[next];
            const uint32_t behind = packet->end;

            if (lane->taken + packet->bytes > sim->end[end].capacity) break;
            lane->first = packet->next;
            lane->waiting -= packet->bytes;
            admit(sim, end, next);
            note_freed(sim, behind, packet->lane, packet->bytes);
        }
        if (sim->end[end].from_host != IBP_SIM_NOTHING) ibp_sim_inject(sim, sim->end[end].from_host);
    }
}

static void free_room(struct ibp_sim *sim, uint32_t end, unsigned lane, uint32_t bytes)
{
    note_freed(sim, end, lane, bytes);
    let_in(sim);
}

/* -- the way of a packet ---------------------------------------------------------------------------------------------- */

static uint32_t queued_at(const struct ibp_sim *sim, uint32_t end, unsigned lane)
{
    const struct ibp_sim_lane *at = &sim->lane[(uint64_t)end * sim->network.lanes + lane];

    return at->taken + at->waiting;
}

/* The least occupied of the ports on shortest ways, any of them at a tie. */
static int32_t choose_end(struct ibp_sim *sim, uint64_t ports, const int32_t *port_end, unsigned lane)
{
    uint32_t least = UINT32_MAX, ties = 0;
    int32_t chosen = IBP_NONE;

    for (; ports; ports &= ports - 1) {
        const int32_t end = port_end[__builtin_ctzll(ports)];
        const uint32_t queued = queued_at(sim, (uint32_t)end, lane);

        if (queued > least) continue;
        if (queued < least) ties = 0;
        least = queued;
        if (ibp_sim_random(sim) % ++ties == 0) chosen = end;
    }
    return chosen;
}

static int32_t next_end(struct ibp_sim *sim, uint32_t node, const struct ibp_sim_packet *packet)
{
    const struct ibp_sim_network *network = &sim->network;
    const uint32_t at = node - network->hosts, leaf = network->host_leaf[packet->host];
    const int32_t *port_end = &network->port_end[(uint64_t)at * network->width];

    if (network->minimal && at != leaf)
        return choose_end(sim, network->minimal[(uint64_t)at * network->switches + leaf], port_end, packet->lane);
    const uint8_t port = network->egress[(uint64_t)at * network->hosts + packet->host];
    return port < network->width ? port_end[port] : IBP_NONE;
}

static void free_packet(struct ibp_sim *sim, uint32_t number)
{
    sim->packet[number].next = sim->free_packet;
    sim->free_packet = number;
    sim->state.in_flight--;
}

void ibp_sim_arrive(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_packet *packet = &sim->packet[number];
    const uint32_t behind = packet->end, node = sim->end[behind].to, bytes = packet->bytes;
    const unsigned lane = packet->lane;

    sim->state.packet_hops++;
    if (node < sim->network.hosts) {
        const uint32_t process = packet->client;

        assert(node == packet->host);
        sim->state.bytes_arrived += bytes;
        free_packet(sim, number);
        free_room(sim, behind, lane, bytes);
        ibp_sim_deliver(sim, process, node, bytes);
        return;
    }
    const int32_t ahead = next_end(sim, node, packet);
    if (ahead == IBP_NONE) {
        sim->state.stopped = IBP_SIM_UNROUTED;
        sim->state.switch_without_route = node - sim->network.hosts;
        sim->state.host_without_route = packet->host;
        return;
    }
    const struct ibp_sim_lane *room = lane_of(sim, (uint32_t)ahead, lane);
    if (room->first != IBP_SIM_NOTHING || room->taken + bytes > sim->end[ahead].capacity) {
        wait_for(sim, (uint32_t)ahead, number);
        return;
    }
    admit(sim, (uint32_t)ahead, number);
    free_room(sim, behind, lane, bytes);
}

/* -- hosts ------------------------------------------------------------------------------------------------------------ */

static uint32_t take_packet(struct ibp_sim *sim)
{
    uint32_t number = sim->free_packet;

    if (number != IBP_SIM_NOTHING) {
        sim->free_packet = sim->packet[number].next;
        return number;
    }
    if (sim->packets == sim->packet_room) {
        const uint32_t room = sim->packet_room ? 2 * sim->packet_room : 1 << 16;
        struct ibp_sim_packet *larger = realloc(sim->packet, (size_t)room * sizeof *larger);

        if (!larger) {
            sim->failed = -ENOMEM;
            return IBP_SIM_NOTHING;
        }
        sim->packet = larger;
        sim->packet_room = room;
    }
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
    const uint32_t end = (uint32_t)sim->network.host_end[host];

    while (outbox->last != IBP_SIM_NOTHING) {
        const uint32_t number = sim->process[outbox->last].next_at_host;
        struct ibp_sim_process *process = &sim->process[number];
        const uint32_t to = process->answering ? process->client.host : ibp_sim_step_of(sim, process)->host;
        const unsigned lane = choose_lane(sim, host, to);
        const uint32_t bytes =
            process->to_inject < sim->network.packet_bytes ? (uint32_t)process->to_inject : sim->network.packet_bytes;
        uint32_t packet;

        if (lane_of(sim, end, lane)->taken + bytes > sim->end[end].capacity) return;
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
        admit(sim, end, packet);
    }
}
