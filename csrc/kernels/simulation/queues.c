/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/queues.h"

#include <errno.h>
#include <stdlib.h>

/* -- routing ------------------------------------------------------------------------------------------------------- */

/* List the queues on the path between two hosts, and return their number. Return 0 if the path does not arrive, or has
 * more than IBP_SIM_PATH_MAX queues. */
static uint8_t list_queues(const struct ibp_sim *sim, struct ibp_sim_path *path)
{
    uint32_t queue = ibp_sim_port_of_host(sim, path->from) * sim->network.lanes + path->lane;

    for (uint8_t hops = 0; hops < IBP_SIM_PATH_MAX && queue != IBP_SIM_NOTHING;) {
        const uint32_t to = sim->queue[queue - path->lane].to;

        path->queue[hops++] = queue;
        if (to < sim->network.hosts) return to == path->to ? hops : 0;
        queue = ibp_sim_look_up(sim, to, path->to, path->lane);
    }
    return 0;
}

void ibp_sim_set_path(struct ibp_sim *sim, uint32_t process, uint32_t from, uint32_t to)
{
    const struct ibp_sim_network *network = &sim->network;
    struct ibp_sim_path *path = &sim->path[process];
    const uint32_t leaf = network->host_leaf[to];

    if (network->minimal) path->hops = 0;
    if (path->from == from && path->to == to) return;
    path->from = from;
    path->to = to;
    path->lane = network->lane ? network->lane[(uint64_t)network->host_leaf[from] * network->switches + leaf] : 0;
    if (!network->minimal) {
        path->hops = list_queues(sim, path);
        return;
    }
    path->queue[0] = ibp_sim_port_of_host(sim, from) * network->lanes + path->lane;
    path->queue[1] = ibp_sim_look_up(sim, network->hosts + leaf, to, path->lane);
    path->queue[2] = network->hosts + leaf;
    path->queue[3] = sim->number_of_leaf[leaf];
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

void ibp_sim_flush_carried(struct ibp_sim *sim, struct ibp_sim_queue *shared, uint16_t job)
{
    struct ibp_sim_carried *carried = &sim->carried[ibp_sim_port_of(sim, shared) * sim->jobs + shared->carried_job];

    carried->bytes += shared->carried_bytes;
    carried->ticks += shared->carried_ticks;
    shared->carried_bytes = shared->carried_ticks = 0;
    shared->carried_job = job;
}

/* Allocate a ring of 2^bits elements of `waiter`. Return the index of the ring's first element. If memory is exhausted,
 * set sim->failed. */
static uint64_t take_ring(struct ibp_sim *sim, unsigned bits)
{
    const uint64_t size = UINT64_C(1) << bits, capacity = 2 * sim->waiter_capacity + size + (1 << 12);
    const uint32_t free_one = sim->free_ring[bits];
    void *waiter = sim->waiter, *arrival = sim->arrival;

    if (free_one != IBP_SIM_NOTHING) {
        sim->free_ring[bits] = sim->waiter[free_one].client;
        return free_one;
    }
    if (sim->waiters + size > sim->waiter_capacity) {
        if (!ibp_sim_grow(sim, &waiter, sim->waiters, capacity, sizeof *sim->waiter)) return capacity;
        sim->waiter = waiter;
        if (ibp_sim_skips(sim)) {
            if (!ibp_sim_grow(sim, &arrival, sim->waiters, capacity, sizeof *sim->arrival)) return capacity;
            sim->arrival = arrival;
        }
        sim->waiter_capacity = capacity;
    }
    sim->waiters += size;
    return sim->waiters - size;
}

bool ibp_sim_size_ring(struct ibp_sim *sim, struct ibp_sim_queue *queue, unsigned bits)
{
    const uint64_t base = take_ring(sim, bits);

    if (sim->failed) return false;
    for (uint32_t i = 0; i < queue->waiting; i++) {
        sim->waiter[base + i] = *ibp_sim_waiter_of(sim, queue, i);
        if (sim->arrival) sim->arrival[base + i] = *ibp_sim_arrival_of(sim, queue, i);
    }
    if (queue->bits) {
        sim->waiter[queue->base].client = sim->free_ring[queue->bits];
        sim->free_ring[queue->bits] = queue->base;
    }
    queue->base = (uint32_t)base;
    queue->bits = (uint8_t)bits;
    queue->front = 0;
    return true;
}

void ibp_sim_sort_last(struct ibp_sim *sim, struct ibp_sim_queue *queue, uint64_t arrival)
{
    uint32_t place = queue->waiting - 1;
    const struct ibp_sim_packed waiter = *ibp_sim_waiter_of(sim, queue, place);

    for (; place && *ibp_sim_arrival_of(sim, queue, place - 1) > arrival; place--) {
        *ibp_sim_waiter_of(sim, queue, place) = *ibp_sim_waiter_of(sim, queue, place - 1);
        *ibp_sim_arrival_of(sim, queue, place) = *ibp_sim_arrival_of(sim, queue, place - 1);
    }
    *ibp_sim_waiter_of(sim, queue, place) = waiter;
    *ibp_sim_arrival_of(sim, queue, place) = arrival;
    if (!place) queue->head = ibp_sim_unpack(sim, waiter);
}

/* -- deadlock ------------------------------------------------------------------------------------------------------ */

/* For each queue, sum the buffered bytes that wait for another queue. Return whether any packet waits. */
static bool sum_waiting(const struct ibp_sim *sim, uint32_t *waits)
{
    bool any = false;

    for (uint64_t i = 0; i < ibp_sim_count_queues(sim); i++)
        for (uint32_t place = 0; place < sim->queue[i].waiting; place++) {
            const struct ibp_sim_waiter waiter = ibp_sim_unpack(sim, *ibp_sim_waiter_of(sim, &sim->queue[i], place));

            waits[waiter.queue] += ibp_sim_bytes_of(waiter.size);
            any = true;
        }
    return any;
}

/* Return whether a queue will serve its first waiting packet later: the queue has buffer space, but the packet, which
 * skipped hops, has not arrived yet. */
static bool serves_later(const struct ibp_sim *sim, const struct ibp_sim_queue *queue)
{
    return ibp_sim_skips(sim) && queue->waiting && ibp_sim_has_buffer(sim, queue, ibp_sim_bytes_of(queue->head.size));
}

/* Mark in `live` the queues whose buffer space will become free. These queues have a packet that is in flight or waits
 * for a marked queue. */
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

        for (uint32_t place = 0; place < queue->waiting; place++) {
            const uint32_t held = ibp_sim_unpack(sim, *ibp_sim_waiter_of(sim, queue, place)).queue;

            if (live[held]) continue;
            live[held] = 1;
            reached[count++] = held;
        }
    }
}

/* Return an array [queue]: 1 if buffer space of the queue will become free. Ignore elements of queues in which no
 * packet waits. Return NULL if no packet waits for any queue, or if memory is exhausted. */
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
        found = sim->queue[i].waiting && !live[i];
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
        for (uint32_t place = 0; place < sim->queue[i].waiting; place++, count++)
            if (count < capacity) {
                const struct ibp_sim_waiter waiter =
                    ibp_sim_unpack(sim, *ibp_sim_waiter_of(sim, &sim->queue[i], place));

                holds[count] = end_of_port[waiter.queue / lanes];
                wants[count] = end_of_port[i / lanes];
            }
    }
    free(end_of_port);
    free(live);
    return count;
}
