/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A simulation's beginning and end, and its time: a wheel of buckets for what happens soon, one a tick, which is nearly all;
 * a heap for the rest.
 */
#include "simulation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MASK = IBP_SIM_WHEEL - 1, WORDS = IBP_SIM_WHEEL / 64, LANES_MAX = 16, SCOUTED_WORDS = 8, CACHE = 4 << 20 };

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
#ifndef NDEBUG
    if (!sim->failed && state->stopped != IBP_SIM_UNROUTED) check_conservation(sim);
#endif
    return sim->failed ? sim->failed : (int64_t)sim->samples;
}

/* -- beginning and end ------------------------------------------------------------------------------------------------ */

static bool is_sound(const struct ibp_sim_network *network, const struct ibp_sim_job *job, uint32_t jobs,
                     const struct ibp_sim_client *client, uint32_t clients, const struct ibp_sim_step *step,
                     uint64_t steps)
{
    if (!network->hosts || network->width > 256 || !network->packet_bytes || jobs > UINT16_MAX || !jobs) return false;
    if (!network->lanes || network->lanes > LANES_MAX) return false;
    for (uint32_t end = 0; end < network->ends; end++)
        if (network->end_capacity[end] < network->packet_bytes || !network->end_delay[end] ||
            network->end_to[end] >= network->hosts + network->switches)
            return false;
    for (uint32_t i = 0; i < clients; i++) {
        if (client[i].host >= network->hosts || client[i].job >= jobs || !client[i].steps ||
            client[i].first_step + client[i].steps > steps || client[i].next >= client[i].steps ||
            network->host_end[client[i].host] == IBP_NONE)
            return false;
        for (uint32_t k = 0; k < client[i].steps; k++)
            if (step[client[i].first_step + k].awaits > client[i].arrivals) return false;
    }
    for (uint64_t i = 0; i < steps; i++)
        if (step[i].host >= network->hosts || network->host_end[step[i].host] == IBP_NONE ||
            (step[i].client != UINT32_MAX &&
             (step[i].client >= clients || step[i].slot >= client[step[i].client].arrivals)))
            return false;
    for (uint32_t i = 0; i < jobs; i++)
        if (job[i].jitter > 65536) return false;
    return true;
}

/* Zeroed, and each at the beginning of a cache line. */
static void *allocate_lines(size_t count, size_t size)
{
    void *made = aligned_alloc(64, count * size);

    if (made) memset(made, 0, count * size);
    return made;
}

static void *copy(const void *from, uint64_t count, size_t size)
{
    void *made = calloc(count ? count : 1, size);

    if (made && count) memcpy(made, from, count * size);
    return made;
}

static void set_up_end(struct ibp_sim *sim, int32_t end, uint32_t place)
{
    const struct ibp_sim_network *network = &sim->network;
    struct ibp_sim_queue *queue = &sim->queue[(uint64_t)place * network->lanes];

    queue->to = end == IBP_NONE ? IBP_SIM_NOTHING : network->end_to[end];
    for (uint32_t lane = 0; lane < network->lanes; lane++) queue[lane].first = queue[lane].last = IBP_SIM_NOTHING;
    if (end == IBP_NONE) return;
    queue->byte_ticks = network->end_byte_ticks[end];
    queue->delay = network->end_delay[end];
    queue->capacity = network->end_capacity[end];
    queue->place = place;
    sim->place_of_end[end] = place;
}

static void set_up_ends(struct ibp_sim *sim)
{
    const struct ibp_sim_network *network = &sim->network;

    for (uint32_t end = 0; end < network->ends; end++) sim->place_of_end[end] = IBP_SIM_NOTHING;
    for (uint32_t i = 0; i < network->switches * network->width; i++) set_up_end(sim, network->port_end[i], i);
    for (uint32_t host = 0; host < network->hosts; host++) {
        set_up_end(sim, network->host_end[host], ibp_sim_place_of_host(sim, host));
        sim->outbox[host].last = IBP_SIM_NOTHING;
    }
    for (uint32_t i = 0; i < IBP_SIM_WHEEL; i++) sim->bucket[i].first = IBP_SIM_NOTHING;
}

struct ibp_sim *ibp_sim_new(const struct ibp_sim_network *network, const struct ibp_sim_job *job, uint32_t jobs,
                            const struct ibp_sim_client *client, uint32_t clients, const struct ibp_sim_step *step,
                            uint64_t steps, uint64_t seed)
{
    struct ibp_sim *sim;
    uint64_t slots = 0;

    if (!is_sound(network, job, jobs, client, clients, step, steps)) return NULL;
    sim = calloc(1, sizeof *sim);
    if (!sim) return NULL;
    sim->network = *network;
    sim->jobs = jobs;
    sim->clients = clients;
    sim->free_packet = IBP_SIM_NOTHING;
    sim->random = seed * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0x2545f4914f6cdd1d);
    if (!sim->random) sim->random = 1;
    sim->places = network->switches * network->width + network->hosts;
    sim->queue = allocate_lines((size_t)sim->places * network->lanes, sizeof *sim->queue);
    sim->is_large =
        (size_t)sim->places * network->lanes * sizeof *sim->queue + (size_t)network->switches * network->hosts > CACHE;
    sim->first_of_hosts = ibp_sim_place_of_host(sim, 0) * network->lanes;
    sim->place_of_end = calloc((size_t)network->ends + 1, sizeof *sim->place_of_end);
    sim->carried = calloc((size_t)sim->places * jobs, sizeof *sim->carried);
    sim->outbox = calloc(network->hosts, sizeof *sim->outbox);
    sim->bucket = calloc(IBP_SIM_WHEEL, sizeof *sim->bucket);
    sim->bucket_used = calloc(WORDS, sizeof *sim->bucket_used);
    sim->job = copy(job, jobs, sizeof *job);
    sim->step = copy(step, steps, sizeof *step);
    sim->process = calloc((size_t)clients + 1, sizeof *sim->process);
    for (uint32_t i = 0; i < clients; i++) slots += client[i].arrivals;
    sim->came = calloc(slots + 1, sizeof *sim->came);
    if (!sim->queue || !sim->place_of_end || !sim->carried || !sim->outbox || !sim->bucket || !sim->bucket_used ||
        !sim->job || !sim->step || !sim->process || !sim->came) {
        ibp_sim_free(sim);
        return NULL;
    }
    set_up_ends(sim);
    slots = 0;
    for (uint32_t i = 0; i < clients; i++) {
        sim->process[i].client = client[i];
        sim->process[i].first_slot = slots;
        slots += client[i].arrivals;
        sim->process[i].position = client[i].next;
        ibp_sim_schedule_process(sim, client[i].start, i);
    }
    if (sim->failed) {
        ibp_sim_free(sim);
        return NULL;
    }
    return sim;
}

void ibp_sim_free(struct ibp_sim *sim)
{
    if (!sim) return;
    free(sim->queue);
    free(sim->place_of_end);
    free(sim->carried);
    free(sim->came);
    free(sim->packet);
    free(sim->outbox);
    free(sim->bucket);
    free(sim->bucket_used);
    free(sim->later);
    free(sim->job);
    free(sim->step);
    free(sim->process);
    free(sim->freed);
    free(sim);
}

/* -- looking ---------------------------------------------------------------------------------------------------------- */

void ibp_sim_look(const struct ibp_sim *sim, struct ibp_sim_state *state)
{
    *state = sim->state;
}

void ibp_sim_ends(const struct ibp_sim *sim, uint64_t *bytes, uint64_t *busy, uint64_t *queued, uint64_t *most_queued)
{
    const uint32_t lanes = sim->network.lanes;

    for (uint32_t end = 0; end < sim->network.ends; end++) {
        const uint32_t place = sim->place_of_end[end];

        queued[end] = most_queued[end] = 0;
        for (uint32_t job = 0; job < sim->jobs; job++) {
            const struct ibp_sim_carried *carried = &sim->carried[(uint64_t)place * sim->jobs + job];

            bytes[(uint64_t)end * sim->jobs + job] = place == IBP_SIM_NOTHING ? 0 : carried->bytes;
            busy[(uint64_t)end * sim->jobs + job] = place == IBP_SIM_NOTHING ? 0 : carried->ticks;
        }
        for (uint32_t lane = 0; lane < lanes && place != IBP_SIM_NOTHING; lane++) {
            const struct ibp_sim_queue *queue = &sim->queue[(uint64_t)place * lanes + lane];

            queued[end] += queue->taken + queue->waiting;
            if (queue->most > most_queued[end]) most_queued[end] = queue->most;
        }
    }
}

void ibp_sim_clients(const struct ibp_sim *sim, uint64_t *steps, uint64_t *bytes, uint64_t *last, uint8_t *busy)
{
    for (uint32_t i = 0; i < sim->clients; i++) {
        steps[i] = sim->process[i].done;
        bytes[i] = sim->process[i].bytes;
        last[i] = sim->process[i].last;
        busy[i] = sim->process[i].under_way || sim->process[i].waits_for_messages;
    }
}

uint64_t ibp_sim_waits(const struct ibp_sim *sim, uint32_t *holds, uint32_t *wants, uint64_t capacity)
{
    const uint32_t lanes = sim->network.lanes;
    uint32_t *end_of_place = calloc(sim->places, sizeof *end_of_place);
    uint64_t count = 0;

    for (uint32_t end = 0; end < sim->network.ends && end_of_place; end++)
        if (sim->place_of_end[end] != IBP_SIM_NOTHING) end_of_place[sim->place_of_end[end]] = end;
    for (uint64_t i = 0; i < (uint64_t)sim->places * lanes && end_of_place; i++)
        for (uint32_t at = sim->queue[i].first; at != IBP_SIM_NOTHING; at = sim->packet[at].next, count++)
            if (count < capacity) {
                holds[count] = end_of_place[sim->packet[at].queue / lanes];
                wants[count] = end_of_place[i / lanes];
            }
    free(end_of_place);
    return count;
}
