/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/clients.h"

/* -- arrival ---------------------------------------------------------------------------------------------------------- */

static void stop_unrouted(struct ibp_sim *sim, uint32_t at, uint32_t host)
{
    sim->state.stopped = IBP_SIM_UNROUTED;
    sim->state.switch_without_route = at;
    sim->state.host_without_route = host;
}

static void arrive_at_host(struct ibp_sim *sim, uint32_t number)
{
    const struct ibp_sim_packet *packet = &sim->packet[number];
    const uint32_t host = packet->node, behind = packet->queue, bytes = packet->bytes, process = packet->client;

    if (!sim->path && host != packet->host) {
        stop_unrouted(sim, sim->network.host_leaf[host], packet->host);
        return;
    }
    ibp_sim_free_packet(sim, number);
    if (behind != IBP_SIM_NOTHING) { /* else its hops were skipped */
        sim->state.bytes_arrived += bytes;
        ibp_sim_free_buffer(sim, behind, bytes);
    }
    ibp_sim_deliver(sim, process, host, bytes);
}

/* Skip a packet's hops to its host. Its bytes count as arrived; only the last packet of a message has an
 * event there. */
static void skip_hops(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_packet *packet = &sim->packet[number];
    const struct ibp_sim_path *path = &sim->path[packet->client];
    struct ibp_sim_process *process = &sim->process[packet->client];
    const uint32_t behind = packet->queue, bytes = packet->bytes;
    const bool is_last = process->to_arrive == bytes;

    ibp_sim_count_skipped(sim, path->hops - packet->hop - is_last);
    sim->state.bytes_arrived += bytes;
    if (!is_last) {
        process->to_arrive -= bytes;
        ibp_sim_free_packet(sim, number);
    } else {
        packet->queue = packet->ahead = IBP_SIM_NOTHING;
        packet->node = path->host;
        ibp_sim_schedule_packet(sim, sim->state.now + path->rest[packet->hop], number);
    }
    ibp_sim_free_buffer(sim, behind, bytes);
}

static void arrive_at_switch(struct ibp_sim *sim, uint32_t number)
{
    const struct ibp_sim_packet *packet = &sim->packet[number];
    const uint32_t at = packet->node - sim->network.hosts, behind = packet->queue, bytes = packet->bytes;
    uint32_t ahead;

    if (ibp_sim_is_path_clear(sim, packet)) {
        skip_hops(sim, number);
        return;
    }
    ahead = sim->path ? sim->path[packet->client].queue[packet->hop] : ibp_sim_next_queue(sim, at, packet);
    if (ahead == IBP_SIM_NOTHING) {
        stop_unrouted(sim, at, packet->host);
        return;
    }
    const struct ibp_sim_queue *queue = &sim->queue[ahead];
    if (queue->first != IBP_SIM_NOTHING ||
        !ibp_sim_has_buffer(queue, ibp_sim_shared(sim, ahead, packet->lane), bytes)) {
        ibp_sim_wait(sim, ahead, number, sim->state.now);
        if (sim->path) ibp_sim_free_buffer(sim, ahead, 0); /* those that wait already may arrive later */
        return;
    }
    ibp_sim_admit(sim, ahead, number);
    ibp_sim_free_buffer(sim, behind, bytes);
}

static void arrive(struct ibp_sim *sim, uint32_t number)
{
    if (sim->packet[number].client == IBP_SIM_NOTHING) { /* of a message that was broken up */
        ibp_sim_drop_packet(sim, number);
        return;
    }
    sim->state.packet_hops++;
    if (sim->packet[number].node < sim->network.hosts)
        arrive_at_host(sim, number);
    else
        arrive_at_switch(sim, number);
}

/* -- prefetching ------------------------------------------------------------------------------------------------------ */

/* Fetch the queues between which a packet will move. */
static void prefetch_queues(const struct ibp_sim *sim, uint32_t number)
{
    const struct ibp_sim_packet *packet = &sim->packet[number];

    if (packet->queue == IBP_SIM_NOTHING) return;
    __builtin_prefetch(&sim->queue[packet->queue], 1);
    if (packet->ahead != IBP_SIM_NOTHING) __builtin_prefetch(&sim->queue[packet->ahead], 1);
    if (packet->node < sim->network.hosts) __builtin_prefetch(&sim->process[packet->client], 1);
}

/* Fetch the packet that takes its buffer; the queues are there already. */
static void prefetch_waiting(const struct ibp_sim *sim, uint32_t number)
{
    const uint32_t queue = sim->packet[number].queue;
    const uint32_t first = queue == IBP_SIM_NOTHING ? queue : sim->queue[queue].first;

    if (first != IBP_SIM_NOTHING) __builtin_prefetch(&sim->packet[first], 1);
}

/* Most of a hop is waiting for memory. The prefetcher goes some packets ahead and fetches what they will need. It
 * misses packets that are scheduled behind it, which costs time alone. */
static void look_ahead(struct ibp_sim *sim)
{
    struct ibp_sim_prefetcher *ahead = &sim->prefetcher;

    if (ahead->tick <= sim->state.now) {
        ahead->tick = sim->state.now;
        ahead->packet = IBP_SIM_NOTHING;
        ahead->lead = 0;
    }
    for (unsigned steps = 0; steps < 2 && ahead->lead < IBP_SIM_LEAD; steps++) {
        uint32_t next = ahead->packet == IBP_SIM_NOTHING ? IBP_SIM_NOTHING : sim->packet[ahead->packet].next;

        if (next == IBP_SIM_NOTHING) next = ibp_sim_first_after(sim, &ahead->tick);
        if (next == IBP_SIM_NOTHING) return;
        __builtin_prefetch(&sim->packet[next], 1);
        ahead->packet = ahead->seen[ahead->count++ % IBP_SIM_LEAD] = next;
        ahead->lead++;
        if (ahead->count < IBP_SIM_LEAD) continue;
        prefetch_queues(sim, ahead->seen[(ahead->count - IBP_SIM_LEAD / 4) % IBP_SIM_LEAD]);
        prefetch_waiting(sim, ahead->seen[(ahead->count - IBP_SIM_LEAD / 2) % IBP_SIM_LEAD]);
    }
    ahead->lead--;
}

/* -- a tick ----------------------------------------------------------------------------------------------------------- */

static void process_heap(struct ibp_sim *sim)
{
    while (ibp_sim_has_event(sim)) {
        const struct ibp_sim_event event = ibp_sim_pop_event(sim);

        if (event.is_packet)
            arrive(sim, event.subject);
        else
            ibp_sim_act(sim, event.subject);
    }
}

static void process_bucket(struct ibp_sim *sim)
{
    uint32_t packet = ibp_sim_take_bucket(sim);

    while (packet != IBP_SIM_NOTHING) {
        const uint32_t next = sim->packet[packet].next;

        if (sim->is_large)
            look_ahead(sim);
        else if (next != IBP_SIM_NOTHING)
            __builtin_prefetch(&sim->packet[next]);
        sim->in_wheel--;
        arrive(sim, packet);
        packet = next;
    }
}

/* Process all events of the present tick. */
static void process_tick(struct ibp_sim *sim)
{
    process_heap(sim);
    process_bucket(sim);
}

/* -- the run ------------------------------------------------------------------------------------------------------- */

/* A search visits all queues: not before as many packets have moved. */
static void search_deadlock(struct ibp_sim *sim)
{
    if (sim->state.packet_hops - sim->checked_at < ibp_sim_count_queues(sim)) return;
    sim->checked_at = sim->state.packet_hops;
    if (ibp_sim_is_stuck(sim)) sim->state.stopped = IBP_SIM_DEADLOCK;
}

#ifndef NDEBUG
/* Every byte that a host has sent is at one place: it has arrived, or occupies buffer of one port. */
static void check_conservation(const struct ibp_sim *sim)
{
    const struct ibp_sim_network *network = &sim->network;
    uint64_t taken = 0, waiting = 0, in_lists = 0, carried = 0;

    for (uint64_t i = 0; i < ibp_sim_count_queues(sim); i++) {
        const struct ibp_sim_queue *queue = &sim->queue[i];

        assert(!queue->taken || queue->taken <= sim->queue[i - i % network->lanes].capacity);
        taken += queue->taken;
        waiting += queue->waiting;
        for (uint32_t at = queue->first; at != IBP_SIM_NOTHING; at = sim->packet[at].next)
            in_lists += sim->packet[at].bytes;
    }
    assert(taken == sim->state.bytes_sent - sim->state.bytes_arrived);
    assert(waiting == in_lists && waiting <= taken);
    for (uint32_t host = 0; host < network->hosts && !sim->path; host++)
        for (uint32_t job = 0; job < sim->jobs; job++)
            carried += sim->carried[(uint64_t)ibp_sim_port_of_host(sim, host) * sim->jobs + job].bytes;
    assert(sim->path || carried == sim->state.bytes_sent);
}
#endif

/* Advance to the next tick with events, and process it. Returns false when the run ends; `stopped` says why. */
static bool advance(struct ibp_sim *sim, uint64_t until, uint64_t last_hop)
{
    struct ibp_sim_state *state = &sim->state;

    if (sim->failed || state->stopped == IBP_SIM_UNROUTED) return false;
    /* Each client completes at most one step in a tick. A tick that has begun is simulated to its end. */
    if (sim->sample_capacity && sim->samples + sim->clients > sim->sample_capacity) {
        state->stopped = IBP_SIM_SAMPLES;
        return false;
    }
    if (state->packet_hops >= last_hop) {
        state->stopped = IBP_SIM_HOPS;
        return false;
    }
    const uint64_t next = ibp_sim_next_tick(sim);
    if (next == UINT64_MAX) {
        state->stopped = state->in_flight ? IBP_SIM_DEADLOCK : IBP_SIM_DONE;
        return false;
    }
    if (next > until) {
        /* Events within the wheel's reach keep their buckets, so time may only go as far as the next of them. */
        state->now = until > state->now ? until : state->now;
        return false;
    }
    assert(next >= state->now);
    state->now = next;
    process_tick(sim);
    return true;
}

int64_t ibp_sim_run(struct ibp_sim *sim, uint64_t until, struct ibp_sim_sample *sample, uint64_t capacity)
{
    struct ibp_sim_state *state = &sim->state;
    const uint64_t last_hop = state->packet_hops + IBP_SIM_HOPS_AT_A_TIME;

    sim->sample = sample;
    sim->samples = 0;
    sim->sample_capacity = capacity;
    state->stopped = IBP_SIM_TIME;
    while (advance(sim, until, last_hop)) {
    }
    if (sim->failed) return sim->failed;
    if (state->stopped == IBP_SIM_TIME || state->stopped == IBP_SIM_HOPS) search_deadlock(sim);
#ifndef NDEBUG
    if (!sim->failed && state->stopped != IBP_SIM_UNROUTED) check_conservation(sim);
#endif
    return sim->failed ? sim->failed : (int64_t)sim->samples;
}
