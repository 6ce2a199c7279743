/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/deadlock.h"
#include "simulation/events.h"

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
    /* A tick may complete one step of each client, and is finished once begun. */
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
    ibp_sim_process_tick(sim);
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
