/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Queues of packets: routing, admission, waiting and credits, and deadlocks.
 */
#ifndef IBP_SIMULATION_QUEUES_H
#define IBP_SIMULATION_QUEUES_H

#include "simulation/adaptive.h"
#include "simulation/agenda.h"

/* -- routing -- */

static inline uint32_t ibp_sim_queue_of_port(const struct ibp_sim *sim, uint32_t at, uint32_t port, unsigned lane)
{
    return ibp_sim_port_of_switch(sim, at, port) * sim->network.lanes + lane;
}

/* Return the queue by which packets to a host leave a switch; IBP_SIM_NOTHING if the switch's forwarding table has no
 * port for the host. */
static inline uint32_t ibp_sim_look_up(const struct ibp_sim *sim, uint32_t node, uint32_t host, unsigned lane)
{
    const struct ibp_sim_network *network = &sim->network;

    if (node < network->hosts) return IBP_SIM_NOTHING;
    const uint32_t at = node - network->hosts;
    const uint32_t port = network->egress[(uint64_t)at * network->hosts + host];
    if (port >= sim->width || sim->queue[ibp_sim_queue_of_port(sim, at, port, 0)].to == IBP_SIM_NOTHING)
        return IBP_SIM_NOTHING;
    return ibp_sim_queue_of_port(sim, at, port, lane);
}

/* Set the path of a process to the path between two hosts, unless the process already has this path. */
void ibp_sim_set_path(struct ibp_sim *sim, uint32_t process, uint32_t from, uint32_t to);

/* Return a packet's queue at the next node, `to`. Return IBP_SIM_AT_HOST if `to` is a host, IBP_SIM_CHOOSE + the switch
 * if several ports are possible. Call this function when the packet departs to node `to`. */
static inline uint32_t ibp_sim_find_ahead(const struct ibp_sim *sim, uint32_t to, uint32_t client, unsigned hop)
{
    const struct ibp_sim_path *path = &sim->path[client];

    if (to < sim->network.hosts) return IBP_SIM_AT_HOST;
    if (sim->network.minimal) {
        if (to == path->queue[2]) return path->queue[1];
        const uint32_t at = to - sim->network.hosts, choice = ibp_sim_choice_of(sim, at, client);
        if (choice == IBP_SIM_NOTHING) return IBP_SIM_NOTHING;
        if (choice >= IBP_SIM_SETS) return IBP_SIM_CHOOSE + at;
        return ibp_sim_queue_of_port(sim, at, choice, ibp_sim_lane_of(sim, client));
    }
    return hop < path->hops ? path->queue[hop] : ibp_sim_look_up(sim, to, path->to, ibp_sim_lane_of(sim, client));
}

/* -- queues -- */

/* Enlarge `freed`, the list of queues that have released buffer space. Return false if memory is exhausted. */
bool ibp_sim_grow_freed(struct ibp_sim *sim);

static inline bool ibp_sim_belongs_to_host(const struct ibp_sim *sim, uint32_t queue)
{
    return queue >= sim->first_of_hosts;
}

static inline const struct ibp_sim_kind *ibp_sim_kind_of(const struct ibp_sim *sim, const struct ibp_sim_queue *queue)
{
    return &sim->kind[queue->kind];
}

static inline bool ibp_sim_has_buffer(const struct ibp_sim *sim, const struct ibp_sim_queue *queue, uint32_t bytes)
{
    return queue->taken + bytes <= ibp_sim_kind_of(sim, queue)->capacity;
}

/* Return whether a packet that arrives must wait for buffer space of a queue. With adaptive routing and equal buffers,
 * read only the array `queued`, because the queue itself may not be in the caches. While packets wait, `queued` exceeds
 * the buffer, because `queued` includes waiting bytes. */
static inline bool ibp_sim_must_wait(const struct ibp_sim *sim, uint32_t number, uint32_t bytes)
{
    const struct ibp_sim_queue *queue = &sim->queue[number];

    if (sim->queued && sim->capacity) return sim->queued[number] + bytes > sim->capacity;
    return queue->waiting || !ibp_sim_has_buffer(sim, queue, bytes);
}

/* Return the ticks to transmit bytes on a link, rounded up. */
static inline uint64_t ibp_sim_ticks_of(const struct ibp_sim_kind *kind, uint64_t bytes)
{
    return (bytes * kind->byte_ticks + UINT32_MAX) >> 32;
}

/* Update the number of queued bytes of a queue, and the maximum of this number. */
static inline void ibp_sim_note_queued(struct ibp_sim *sim, uint32_t number, struct ibp_sim_queue *queue)
{
    if (queue->queued > queue->most) queue->most = queue->queued;
    if (sim->queued) sim->queued[number] = queue->queued;
}

/* Move the last job's counts from a queue to sim->carried, before a packet of another job is counted. */
void ibp_sim_flush_carried(struct ibp_sim *sim, struct ibp_sim_queue *shared, uint16_t job);

static inline void ibp_sim_note_carried(struct ibp_sim *sim, struct ibp_sim_queue *shared, uint16_t job, uint32_t bytes,
                                        uint64_t ticks)
{
    const bool is_full = (shared->carried_bytes | shared->carried_ticks | ticks) >> 30 != 0;

    if (is_full || job != shared->carried_job) ibp_sim_flush_carried(sim, shared, job);
    if (ticks >> 30) {
        struct ibp_sim_carried *carried = &sim->carried[ibp_sim_port_of(sim, shared) * sim->jobs + job];

        carried->ticks += ticks;
        ticks = 0;
    }
    shared->carried_bytes += bytes;
    shared->carried_ticks += (uint32_t)ticks;
}

/* Move the waiting packets to a ring of another size. Return false if memory is exhausted. */
bool ibp_sim_size_ring(struct ibp_sim *sim, struct ibp_sim_queue *queue, unsigned bits);

/* If hops are skipped: move the last waiting packet forward, so that waiting packets are in the order of arrival. */
void ibp_sim_sort_last(struct ibp_sim *sim, struct ibp_sim_queue *queue, uint64_t arrival);

static inline uint64_t *ibp_sim_arrival_of(const struct ibp_sim *sim, const struct ibp_sim_queue *queue, uint32_t place)
{
    return &sim->arrival[ibp_sim_waiter_of(sim, queue, place) - sim->waiter];
}

/* Add a packet to the packets that wait for the buffer of a queue. Waiting packets are in the order of arrival. */
static inline void ibp_sim_wait(struct ibp_sim *sim, uint32_t wanted, struct ibp_sim_packet packet, uint64_t arrival)
{
    struct ibp_sim_queue *queue = &sim->queue[wanted];
    const struct ibp_sim_waiter waiter = {packet.client, packet.queue, packet.size};

    if (!queue->bits || queue->waiting >> queue->bits) {
        if (!ibp_sim_size_ring(sim, queue, queue->bits ? queue->bits + 1U : IBP_SIM_RING_BITS)) return;
    }
    *ibp_sim_waiter_of(sim, queue, queue->waiting++) = ibp_sim_pack(sim, waiter);
    if (queue->waiting == 1) queue->head = waiter;
    if (sim->arrival) ibp_sim_sort_last(sim, queue, arrival);
    queue->queued += ibp_sim_bytes_of(packet.size);
    ibp_sim_note_queued(sim, wanted, queue);
}

/* Remove and return the first waiting packet. Replace a nearly empty ring by a smaller ring, because accesses to a
 * large ring evict more data from the caches. */
static inline struct ibp_sim_waiter ibp_sim_pop_waiter(struct ibp_sim *sim, struct ibp_sim_queue *queue)
{
    const struct ibp_sim_waiter first = queue->head;

    queue->front++;
    queue->waiting--;
    if (queue->waiting << 3 < UINT32_C(1) << queue->bits && queue->bits > IBP_SIM_RING_BITS + 1)
        ibp_sim_size_ring(sim, queue, queue->bits - 2U);
    if (queue->waiting) queue->head = ibp_sim_unpack(sim, *ibp_sim_waiter_of(sim, queue, 0));
    return first;
}

/* If packets wait for the next queue on a packet's path, append the packet to the waiting packets and return true. The
 * packet's arrival then needs no event. Otherwise return false. */
static inline bool ibp_sim_wait_ahead(struct ibp_sim *sim, struct ibp_sim_packet packet, uint64_t arrival)
{
    const struct ibp_sim_path *path = &sim->path[packet.client];

    if (ibp_sim_hop_of(packet.size) >= path->clear_from) return false;
    const struct ibp_sim_queue *queue = &sim->queue[path->queue[ibp_sim_hop_of(packet.size)]];
    if (!queue->waiting || ibp_sim_has_buffer(sim, queue, ibp_sim_bytes_of(queue->head.size))) return false;
    ibp_sim_wait(sim, path->queue[ibp_sim_hop_of(packet.size)], packet, arrival);
    ibp_sim_count_skipped(sim, 1);
    return true;
}

/* Transmit a packet that queue `into` has admitted, and schedule the packet's arrival. */
static inline void ibp_sim_transmit(struct ibp_sim *sim, uint32_t into, uint32_t client, uint32_t size)
{
    const uint32_t bytes = ibp_sim_bytes_of(size);
    struct ibp_sim_queue *queue = &sim->queue[into], *shared = ibp_sim_shared(sim, into, client);
    const struct ibp_sim_kind *kind = ibp_sim_kind_of(sim, shared);
    const uint64_t ticks = ibp_sim_ticks_of(kind, bytes), now = sim->state.now;
    const uint64_t sent = (shared->free_at < now ? now : shared->free_at) + ticks;
    struct ibp_sim_packet packet = {.client = client, .queue = into, .size = size + IBP_SIM_PACKET_LIMIT};

    queue->taken += bytes;
    assert(queue->taken <= kind->capacity && queue->taken <= queue->queued);
    shared->free_at = sent + kind->gap;
    if (!ibp_sim_skips(sim))
        ibp_sim_note_carried(sim, shared, sim->path[client].job, bytes, ticks);
    else if (ibp_sim_wait_ahead(sim, packet, sent + kind->delay))
        return;
    packet.ahead = ibp_sim_find_ahead(sim, shared->to, client, ibp_sim_hop_of(packet.size));
    ibp_sim_schedule_packet(sim, sent + kind->delay, packet);
}

/* Admit a packet to a queue, and transmit the packet. */
static inline void ibp_sim_admit(struct ibp_sim *sim, uint32_t into, uint32_t client, uint32_t size)
{
    struct ibp_sim_queue *queue = &sim->queue[into];

    queue->queued += ibp_sim_bytes_of(size);
    ibp_sim_note_queued(sim, into, queue);
    ibp_sim_transmit(sim, into, client, size);
}

/* Release buffer space of a queue. Add the queue to `freed` if packets wait for the queue, or if the queue belongs to a
 * host. */
static inline void ibp_sim_release(struct ibp_sim *sim, uint32_t number, uint32_t bytes)
{
    struct ibp_sim_queue *queue = &sim->queue[number];

    assert(queue->taken >= bytes);
    queue->taken -= bytes;
    queue->queued -= bytes;
    if (sim->queued) sim->queued[number] = queue->queued;
    if (!queue->waiting && !ibp_sim_belongs_to_host(sim, number)) return;
    if (sim->freed_count < sim->freed_capacity || ibp_sim_grow_freed(sim)) sim->freed[sim->freed_count++] = number;
}

/* -- deadlock -- */

/* Return whether some packets wait for each other forever. The function's time is proportional to the number of
 * queues. */
bool ibp_sim_is_stuck(struct ibp_sim *sim);

#endif
