/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The packets on the network, and the queues that they pass: free packets, the queue by which a packet leaves a node,
 * admission, waiting and credits, deadlocks. Inline is what every hop of every packet calls.
 */
#ifndef IBP_SIMULATION_QUEUES_H
#define IBP_SIMULATION_QUEUES_H

#include "simulation/agenda.h"

/* -- packets -- */

/* Take a packet from the list of free ones, its contents unset. IBP_SIM_NOTHING when memory is short. */
uint32_t ibp_sim_take_packet(struct ibp_sim *sim);

/* Put a packet that is not in flight into the list of free ones. */
static inline void ibp_sim_drop_packet(struct ibp_sim *sim, uint32_t packet)
{
    sim->packet[packet].next = sim->free_packet;
    sim->free_packet = packet;
}

/* Put a packet that has arrived back into the list of free ones. */
static inline void ibp_sim_free_packet(struct ibp_sim *sim, uint32_t packet)
{
    ibp_sim_drop_packet(sim, packet);
    sim->state.in_flight--;
}

/* -- routing -- */

static inline uint32_t ibp_sim_queue_of_port(const struct ibp_sim *sim, uint32_t at, uint32_t port, unsigned lane)
{
    return ibp_sim_port_of_switch(sim, at, port) * sim->network.lanes + lane;
}

/* Return the queue that the forwarding tables name for a packet at a node, or IBP_SIM_NOTHING. It is looked up when the
 * packet departs: nothing waits for the answer yet. */
static inline uint32_t ibp_sim_look_up(const struct ibp_sim *sim, uint32_t node, const struct ibp_sim_packet *packet)
{
    const struct ibp_sim_network *network = &sim->network;

    if (node < network->hosts) return IBP_SIM_NOTHING;
    const uint32_t at = node - network->hosts;
    const uint32_t port = network->egress[(uint64_t)at * network->hosts + packet->host];
    return port < network->width ? ibp_sim_queue_of_port(sim, at, port, packet->lane) : IBP_SIM_NOTHING;
}

/* Return the least occupied of the queues on shortest routes, a random one of equals. */
uint32_t ibp_sim_choose_queue(struct ibp_sim *sim, uint32_t at, uint32_t leaf, unsigned lane);

/* Return the queue by which a packet leaves a switch, or IBP_SIM_NOTHING. */
static inline uint32_t ibp_sim_next_queue(struct ibp_sim *sim, uint32_t at, const struct ibp_sim_packet *packet)
{
    const struct ibp_sim_network *network = &sim->network;
    const uint32_t leaf = network->host_leaf[packet->host];

    if (network->minimal && at != leaf) return ibp_sim_choose_queue(sim, at, leaf, packet->lane);
    if (packet->ahead == IBP_SIM_NOTHING) return IBP_SIM_NOTHING;
    return ibp_sim_shared(sim, packet->ahead, packet->lane)->to == IBP_SIM_NOTHING ? IBP_SIM_NOTHING : packet->ahead;
}

/* -- queues -- */

/* Make space for more queues in the list of those that released buffer. Returns false when memory is short. */
bool ibp_sim_grow_freed(struct ibp_sim *sim);

static inline bool ibp_sim_belongs_to_host(const struct ibp_sim *sim, uint32_t queue)
{
    return queue >= sim->first_of_hosts;
}

static inline bool ibp_sim_has_buffer(const struct ibp_sim_queue *queue, const struct ibp_sim_queue *shared,
                                      uint32_t bytes)
{
    return queue->taken + bytes <= shared->capacity;
}

static inline void ibp_sim_note_most(struct ibp_sim_queue *queue)
{
    if (queue->taken + queue->waiting > queue->most) queue->most = queue->taken + queue->waiting;
}

/* Return the ticks that bytes take on a queue's link, rounded up; of the first lane, which has what lanes share. */
static inline uint64_t ibp_sim_ticks_of(const struct ibp_sim_queue *shared, uint64_t bytes)
{
    return (bytes * shared->byte_ticks + UINT32_MAX) >> 32;
}

static inline void ibp_sim_note_carried(struct ibp_sim *sim, const struct ibp_sim_queue *shared,
                                        const struct ibp_sim_packet *packet, uint64_t ticks)
{
    struct ibp_sim_carried *carried = &sim->carried[(uint64_t)shared->port * sim->jobs + packet->job];

    carried->bytes += packet->bytes;
    carried->ticks += ticks;
}

/* Put a packet among those that wait for a queue's buffer, in the order of their arrival. */
static inline void ibp_sim_wait(struct ibp_sim *sim, uint32_t wanted, uint32_t number, uint64_t arrival)
{
    struct ibp_sim_packet *packet = &sim->packet[number];
    struct ibp_sim_queue *queue = &sim->queue[wanted];
    uint32_t before = queue->first == IBP_SIM_NOTHING ? IBP_SIM_NOTHING : queue->last, after = IBP_SIM_NOTHING;

    if (before != IBP_SIM_NOTHING && queue->last_arrival > arrival) {
        do {
            after = before;
            before = before == queue->first ? IBP_SIM_NOTHING : sim->packet[before].before;
        } while (before != IBP_SIM_NOTHING && sim->packet[before].arrival > arrival);
    } else {
        queue->last_arrival = arrival;
    }
    packet->arrival = arrival;
    packet->next = after;
    if (sim->path) packet->before = before;
    if (before == IBP_SIM_NOTHING)
        queue->first = number;
    else
        sim->packet[before].next = number;
    if (after == IBP_SIM_NOTHING)
        queue->last = number;
    else
        sim->packet[after].before = number;
    queue->waiting += packet->bytes;
    ibp_sim_note_most(queue);
}

/* Let a packet wait for the next queue on its path before it arrives there, where others wait: it needs no event then.
 * Returns false where it needs one. */
static inline bool ibp_sim_wait_ahead(struct ibp_sim *sim, uint32_t number, uint64_t arrival)
{
    const struct ibp_sim_packet *packet = &sim->packet[number];
    const struct ibp_sim_path *path = &sim->path[packet->client];

    if (packet->hop >= path->clear_from) return false;
    const uint32_t ahead = path->queue[packet->hop];
    const struct ibp_sim_queue *queue = &sim->queue[ahead];
    if (queue->first == IBP_SIM_NOTHING || ibp_sim_has_buffer(queue, queue, sim->packet[queue->first].bytes))
        return false;
    ibp_sim_wait(sim, ahead, number, arrival);
    ibp_sim_count_skipped(sim, 1);
    return true;
}

/* Take buffer in a queue and a turn on its link; schedule the packet's arrival. */
static inline void ibp_sim_admit(struct ibp_sim *sim, uint32_t into, uint32_t number)
{
    struct ibp_sim_packet *packet = &sim->packet[number];
    struct ibp_sim_queue *queue = &sim->queue[into], *shared = ibp_sim_shared(sim, into, packet->lane);
    const uint64_t ticks = ibp_sim_ticks_of(shared, packet->bytes);

    queue->taken += packet->bytes;
    assert(queue->taken <= shared->capacity);
    ibp_sim_note_most(queue);
    packet->hop++;
    if (shared->free_at < sim->state.now) shared->free_at = sim->state.now;
    shared->free_at += ticks;
    if (!sim->path) ibp_sim_note_carried(sim, shared, packet, ticks);
    packet->queue = into;
    if (!sim->path || !ibp_sim_wait_ahead(sim, number, shared->free_at + shared->delay)) {
        packet->node = shared->to;
        if (!sim->path) packet->ahead = ibp_sim_look_up(sim, shared->to, packet);
        ibp_sim_schedule_packet(sim, shared->free_at + shared->delay, number);
    }
    shared->free_at += shared->gap;
}

/* Release buffer, and list the queue where a packet may wait for it, or a host with more to send. */
static inline void ibp_sim_release(struct ibp_sim *sim, uint32_t number, uint32_t bytes)
{
    struct ibp_sim_queue *queue = &sim->queue[number];

    assert(queue->taken >= bytes);
    queue->taken -= bytes;
    if (queue->first == IBP_SIM_NOTHING && !ibp_sim_belongs_to_host(sim, number)) return;
    if (sim->freed_count < sim->freed_capacity || ibp_sim_grow_freed(sim)) sim->freed[sim->freed_count++] = number;
}

/* -- deadlock -- */

/* Return whether some packets wait for each other so that they never move again, whether or not others go on. Takes time
 * by queues. */
bool ibp_sim_is_stuck(struct ibp_sim *sim);

#endif
