/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/clients.h"

/* -- arrival ------------------------------------------------------------------------------------------------------- */

static void stop_unrouted(struct ibp_sim *sim, uint32_t at, uint32_t host)
{
    sim->state.stopped = IBP_SIM_UNROUTED;
    sim->state.switch_without_route = at;
    sim->state.host_without_route = host;
}

static void arrive_at_host(struct ibp_sim *sim, struct ibp_sim_packet packet)
{
    const struct ibp_sim_process *process = &sim->process[packet.client];
    const uint32_t host = process->to;

    if (packet.queue != IBP_SIM_NOTHING) { /* a packet that skipped no hops */
        const uint32_t there = ibp_sim_shared(sim, packet.queue, packet.client)->to;

        if (there != host) {
            stop_unrouted(sim, sim->network.host_leaf[there], host);
            return;
        }
        sim->state.bytes_arrived += ibp_sim_bytes_of(packet.size);
        sim->state.in_flight--;
        ibp_sim_free_buffer(sim, packet.queue, ibp_sim_bytes_of(packet.size));
    } else {
        sim->state.in_flight--;
    }
    ibp_sim_deliver(sim, packet.client, host, ibp_sim_bytes_of(packet.size));
}

/* Skip the remaining hops of a packet, and count its bytes as arrived. Only the last packet of a message has an event
 * at the host. */
static void skip_hops(struct ibp_sim *sim, struct ibp_sim_packet packet)
{
    const struct ibp_sim_path *path = &sim->path[packet.client];
    struct ibp_sim_process *process = &sim->process[packet.client];
    const bool is_last = process->to_arrive == ibp_sim_bytes_of(packet.size);

    ibp_sim_count_skipped(sim, path->hops - ibp_sim_hop_of(packet.size) - is_last);
    sim->state.bytes_arrived += ibp_sim_bytes_of(packet.size);
    if (!is_last) {
        process->to_arrive -= ibp_sim_bytes_of(packet.size);
        sim->state.in_flight--;
    } else {
        const struct ibp_sim_packet last = {.client = packet.client,
                                            .queue = IBP_SIM_NOTHING,
                                            .ahead = IBP_SIM_AT_HOST,
                                            .size = ibp_sim_bytes_of(packet.size)};

        ibp_sim_schedule_packet(sim, sim->state.now + path->rest[ibp_sim_hop_of(packet.size)], last);
    }
    ibp_sim_free_buffer(sim, packet.queue, ibp_sim_bytes_of(packet.size));
}

static void arrive_at_switch(struct ibp_sim *sim, struct ibp_sim_packet packet)
{
    const uint32_t client = packet.client, behind = packet.queue, bytes = ibp_sim_bytes_of(packet.size);
    uint32_t ahead = packet.ahead;

    if (ibp_sim_is_path_clear(sim, packet)) {
        skip_hops(sim, packet);
        return;
    }
    if (ahead == IBP_SIM_NOTHING) {
        stop_unrouted(sim, ibp_sim_shared(sim, behind, client)->to - sim->network.hosts, sim->process[client].to);
        return;
    }
    if (ahead >= IBP_SIM_CHOOSE) ahead = ibp_sim_choose_queue(sim, ahead - IBP_SIM_CHOOSE, client);
    if (ibp_sim_must_wait(sim, ahead, bytes)) {
        ibp_sim_wait(sim, ahead, packet, sim->state.now);
        if (ibp_sim_skips(sim)) ibp_sim_free_buffer(sim, ahead, 0); /* a packet in front may still be on its way */
        return;
    }
    ibp_sim_admit(sim, ahead, client, packet.size);
    ibp_sim_free_buffer(sim, behind, bytes);
}

static void arrive(struct ibp_sim *sim, struct ibp_sim_packet packet)
{
    const bool is_whole = packet.queue == IBP_SIM_NOTHING && packet.ahead != IBP_SIM_AT_HOST;

    if (is_whole && sim->path[packet.client].whole != packet.ahead) return; /* packets have events again */
    sim->state.packet_hops++;
    if (packet.ahead == IBP_SIM_AT_HOST || is_whole)
        arrive_at_host(sim, packet);
    else
        arrive_at_switch(sim, packet);
}

/* -- a tick -------------------------------------------------------------------------------------------------------- */

static void process_heap(struct ibp_sim *sim)
{
    while (ibp_sim_has_event(sim)) {
        const struct ibp_sim_event event = ibp_sim_pop_event(sim);

        if (event.is_packet)
            arrive(sim, event.packet);
        else
            ibp_sim_act(sim, event.packet.client);
    }
}

static void process_bucket(struct ibp_sim *sim)
{
    const struct ibp_sim_bucket bucket = ibp_sim_take_bucket(sim);
    uint32_t chunk = bucket.first, slot = chunk + 1;

    while (bucket.end && slot != bucket.end) {
        if (!(slot & IBP_SIM_CHUNK_MASK)) {
            const uint32_t next = sim->slot[chunk].next;

            ibp_sim_drop_chunk(sim, chunk);
            chunk = next;
            slot = chunk + 1;
        }
        sim->in_wheel--;
        arrive(sim, sim->slot[slot++].packet);
    }
    if (bucket.end) ibp_sim_drop_chunk(sim, chunk);
}

static void process_tick(struct ibp_sim *sim)
{
    process_heap(sim);
    process_bucket(sim);
}

/* -- the run ------------------------------------------------------------------------------------------------------- */

/* Search for a deadlock once per `search_hops` packet hops, because a search visits all queues. */
static void search_deadlock(struct ibp_sim *sim)
{
    if (sim->state.packet_hops - sim->checked_at < sim->search_hops) return;
    sim->checked_at = sim->state.packet_hops;
    if (ibp_sim_is_stuck(sim)) sim->state.stopped = IBP_SIM_DEADLOCK;
}

#ifndef NDEBUG
/* Check that each sent byte either has arrived, or occupies the buffer of exactly one port. */
static void check_conservation(const struct ibp_sim *sim)
{
    const struct ibp_sim_network *network = &sim->network;
    uint64_t taken = 0, waiting = 0, in_lists = 0, carried = 0;

    for (uint64_t i = 0; i < ibp_sim_count_queues(sim); i++) {
        const struct ibp_sim_queue *queue = &sim->queue[i];

        assert(!queue->taken || queue->taken <= ibp_sim_kind_of(sim, queue)->capacity);
        taken += queue->taken;
        waiting += queue->queued - queue->taken;
        for (uint32_t place = 0; place < queue->waiting; place++)
            in_lists += ibp_sim_bytes_of(ibp_sim_unpack(sim, *ibp_sim_waiter_of(sim, queue, place)).size);
    }
    assert(taken == sim->state.bytes_sent - sim->state.bytes_arrived);
    assert(waiting == in_lists && waiting <= taken);
    for (uint32_t host = 0; host < network->hosts && !ibp_sim_skips(sim); host++) {
        const uint32_t port = ibp_sim_port_of_host(sim, host);

        carried += sim->queue[(uint64_t)port * network->lanes].carried_bytes;
        for (uint32_t job = 0; job < sim->jobs; job++) carried += sim->carried[(uint64_t)port * sim->jobs + job].bytes;
    }
    assert(ibp_sim_skips(sim) || carried == sim->state.bytes_sent);
}
#endif

/* Go to the next tick with events, and process it. Return false if the run ends; `stopped` is the reason. */
static bool advance(struct ibp_sim *sim, uint64_t until, uint64_t last_hop)
{
    struct ibp_sim_state *state = &sim->state;

    if (sim->failed || state->stopped == IBP_SIM_UNROUTED) return false;
    /* Stop if the array lacks space for one sample of each client. In one tick, each client may complete a step. */
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
        /* Events in the wheel keep their buckets, so time must not advance beyond the next event. */
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
