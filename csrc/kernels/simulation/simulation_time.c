/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A simulation's time: a wheel of buckets for what happens soon, one a tick, which is nearly all; a heap for the rest.
 */
#include "simulation/simulation.h"

#include <errno.h>
#include <stdlib.h>

enum { MASK = IBP_SIM_WHEEL - 1, WORDS = IBP_SIM_WHEEL / 64, SCOUTED_WORDS = 8 };

/* -- later ------------------------------------------------------------------------------------------------------------ */

static bool is_before(const struct ibp_sim_later *a, const struct ibp_sim_later *b)
{
    return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static void push_later(struct ibp_sim *sim, uint64_t when, uint32_t what, bool is_packet)
{
    const struct ibp_sim_later made = {.when = when, .order = sim->order++, .what = what, .is_packet = is_packet};
    uint64_t at;

    assert(when > sim->state.now || !sim->state.steps);
    if (sim->laters == sim->later_room) {
        const uint64_t room = 2 * sim->later_room + 1024;
        struct ibp_sim_later *larger = realloc(sim->later, room * sizeof *larger);

        if (!larger) {
            sim->failed = -ENOMEM;
            return;
        }
        sim->later = larger;
        sim->later_room = room;
    }
    for (at = sim->laters++; at; at = (at - 1) / 2) {
        if (!is_before(&made, &sim->later[(at - 1) / 2])) break;
        sim->later[at] = sim->later[(at - 1) / 2];
    }
    sim->later[at] = made;
}

static struct ibp_sim_later pop_later(struct ibp_sim *sim)
{
    const struct ibp_sim_later first = sim->later[0], last = sim->later[--sim->laters];
    uint64_t at = 0;

    for (;;) {
        uint64_t child = 2 * at + 1;

        if (child >= sim->laters) break;
        if (child + 1 < sim->laters && is_before(&sim->later[child + 1], &sim->later[child])) child++;
        if (!is_before(&sim->later[child], &last)) break;
        sim->later[at] = sim->later[child];
        at = child;
    }
    sim->later[at] = last;
    return first;
}

void ibp_sim_schedule_process(struct ibp_sim *sim, uint64_t when, uint32_t process)
{
    push_later(sim, when, process, false);
}

void ibp_sim_schedule_later(struct ibp_sim *sim, uint64_t when, uint32_t packet)
{
    push_later(sim, when, packet, true);
}

/* -- soon ------------------------------------------------------------------------------------------------------------- */

/* The tick of the next bucket that has anything; the wheel is not empty. */
static uint64_t next_bucket(const struct ibp_sim *sim)
{
    const uint64_t now = sim->state.now;
    uint32_t word = ((uint32_t)now & MASK) / 64;
    uint64_t bits = sim->bucket_used[word] >> (now % 64), passed = 64 - now % 64;

    if (bits) return now + (uint64_t)__builtin_ctzll(bits);
    for (;;) {
        word = (word + 1) % WORDS;
        bits = sim->bucket_used[word];
        if (bits) return now + passed + (uint64_t)__builtin_ctzll(bits);
        passed += 64;
    }
}

static uint32_t empty_bucket(struct ibp_sim *sim)
{
    const uint32_t number = (uint32_t)sim->state.now & MASK;
    const uint32_t first = sim->bucket[number].first;

    sim->bucket[number].first = IBP_SIM_NOTHING;
    sim->bucket_used[number / 64] &= ~(UINT64_C(1) << (number % 64));
    return first;
}

/* -- running ---------------------------------------------------------------------------------------------------------- */

static void do_laters(struct ibp_sim *sim)
{
    while (sim->laters && sim->later[0].when <= sim->state.now) {
        const struct ibp_sim_later later = pop_later(sim);

        if (later.is_packet)
            ibp_sim_arrive(sim, later.what);
        else
            ibp_sim_act(sim, later.what);
    }
}

/* The first packet of the first bucket after a tick, not too far on; IBP_SIM_NOTHING if there is none. */
static uint32_t first_after(const struct ibp_sim *sim, uint64_t *tick)
{
    uint64_t word = (*tick + 1) / 64, used = sim->bucket_used[word % WORDS] & (UINT64_MAX << (*tick + 1) % 64);

    for (unsigned words = 0; words < SCOUTED_WORDS; words++, used = sim->bucket_used[++word % WORDS])
        if (used) {
            *tick = word * 64 + (uint64_t)__builtin_ctzll(used);
            return sim->bucket[*tick & MASK].first;
        }
    return IBP_SIM_NOTHING;
}

/* Most of a hop is waiting for memory. So a scout goes some packets ahead of what happens, and has fetched what they will
 * need. What is scheduled behind its back it misses, which costs time alone. */
static void look_ahead(struct ibp_sim *sim)
{
    struct ibp_sim_scout *scout = &sim->scout;

    if (scout->tick <= sim->state.now) {
        scout->tick = sim->state.now;
        scout->packet = IBP_SIM_NOTHING;
        scout->lead = 0;
    }
    for (unsigned steps = 0; steps < 2 && scout->lead < IBP_SIM_LEAD; steps++) {
        uint32_t next = scout->packet == IBP_SIM_NOTHING ? IBP_SIM_NOTHING : sim->packet[scout->packet].next;

        if (next == IBP_SIM_NOTHING) next = first_after(sim, &scout->tick);
        if (next == IBP_SIM_NOTHING) return;
        __builtin_prefetch(&sim->packet[next], 1);
        scout->packet = scout->seen[scout->count++ % IBP_SIM_LEAD] = next;
        scout->lead++;
        if (scout->count < IBP_SIM_LEAD) continue;
        ibp_sim_prefetch_queues(sim, scout->seen[(scout->count - IBP_SIM_LEAD / 4) % IBP_SIM_LEAD]);
        ibp_sim_prefetch_waiting(sim, scout->seen[(scout->count - IBP_SIM_LEAD / 2) % IBP_SIM_LEAD]);
    }
    scout->lead--;
}

static void do_bucket(struct ibp_sim *sim)
{
    uint32_t packet = empty_bucket(sim);

    while (packet != IBP_SIM_NOTHING) {
        const uint32_t next = sim->packet[packet].next;

        if (sim->is_large)
            look_ahead(sim);
        else if (next != IBP_SIM_NOTHING)
            __builtin_prefetch(&sim->packet[next]);
        sim->in_wheel--;
        ibp_sim_arrive(sim, packet);
        packet = next;
    }
}

/* To look is to go through all queues: not before as many packets have moved. */
static void look_for_deadlock(struct ibp_sim *sim)
{
    if (sim->state.packet_hops - sim->looked_at < (uint64_t)sim->places * sim->network.lanes) return;
    sim->looked_at = sim->state.packet_hops;
    if (ibp_sim_is_stuck(sim)) sim->state.stopped = IBP_SIM_DEADLOCK;
}

#ifndef NDEBUG
/* Every byte that a host has sent is at one place: it has arrived, or takes room at one end. */
static void check_conservation(const struct ibp_sim *sim)
{
    const struct ibp_sim_network *network = &sim->network;
    uint64_t taken = 0, waiting = 0, in_lists = 0, carried = 0;

    for (uint64_t i = 0; i < (uint64_t)sim->places * network->lanes; i++) {
        const struct ibp_sim_queue *queue = &sim->queue[i];

        assert(!queue->taken || queue->taken <= sim->queue[i - i % network->lanes].capacity);
        taken += queue->taken;
        waiting += queue->waiting;
        for (uint32_t at = queue->first; at != IBP_SIM_NOTHING; at = sim->packet[at].next)
            in_lists += sim->packet[at].bytes;
    }
    assert(taken == sim->state.bytes_sent - sim->state.bytes_arrived);
    assert(waiting == in_lists && waiting <= taken);
    for (uint32_t host = 0; host < network->hosts; host++)
        for (uint32_t job = 0; job < sim->jobs; job++)
            carried += sim->carried[(uint64_t)ibp_sim_place_of_host(sim, host) * sim->jobs + job].bytes;
    assert(carried == sim->state.bytes_sent);
}
#endif

int64_t ibp_sim_run(struct ibp_sim *sim, uint64_t until, struct ibp_sim_sample *sample, uint64_t capacity)
{
    struct ibp_sim_state *state = &sim->state;
    const uint64_t enough = state->packet_hops + IBP_SIM_HOPS_AT_A_TIME;

    sim->sample = sample;
    sim->samples = 0;
    /* A tick may complete one step of each client, and is finished once begun. */
    sim->sample_room = capacity;
    state->stopped = IBP_SIM_TIME;
    while (!sim->failed) {
        uint64_t next = UINT64_MAX;

        if (state->stopped == IBP_SIM_UNROUTED) break;
        if (capacity && sim->samples + sim->clients > capacity) {
            state->stopped = IBP_SIM_SAMPLES;
            break;
        }
        if (state->packet_hops >= enough) {
            state->stopped = IBP_SIM_HOPS;
            break;
        }
        if (sim->in_wheel) next = next_bucket(sim);
        if (sim->laters && sim->later[0].when < next) next = sim->later[0].when;
        if (next == UINT64_MAX) {
            state->stopped = state->in_flight ? IBP_SIM_DEADLOCK : IBP_SIM_DONE;
            break;
        }
        if (next > until) {
            /* What is due within the wheel's reach keeps its bucket, so time may only go as far as the next of it. */
            state->now = until > state->now ? until : state->now;
            break;
        }
        assert(next >= state->now);
        state->now = next;
        do_laters(sim);
        do_bucket(sim);
    }
    if (!sim->failed && (state->stopped == IBP_SIM_TIME || state->stopped == IBP_SIM_HOPS)) look_for_deadlock(sim);
#ifndef NDEBUG
    if (!sim->failed && state->stopped != IBP_SIM_UNROUTED) check_conservation(sim);
#endif
    return sim->failed ? sim->failed : (int64_t)sim->samples;
}
