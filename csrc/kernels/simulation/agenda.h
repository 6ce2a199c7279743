/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Events in order of time: a wheel with a bucket for each tick holds nearly all, a heap those farther ahead.
 *
 * The wheel is inline, because every hop of every packet goes through it.
 */
#ifndef IBP_SIMULATION_AGENDA_H
#define IBP_SIMULATION_AGENDA_H

#include "simulation/state.h"

enum {
    IBP_SIM_WHEEL_MASK = IBP_SIM_WHEEL - 1,
    /* Words of `bucket_used`. */
    IBP_SIM_WHEEL_WORDS = IBP_SIM_WHEEL / 64,
    /* Those that ibp_sim_first_after reads. */
    IBP_SIM_NEAR_WORDS = 8
};

/* -- heap -- */

/* Schedule a process to act at a later tick. */
void ibp_sim_schedule_process(struct ibp_sim *sim, uint64_t when, uint32_t process);

/* Schedule a packet's arrival at a tick beyond the reach of the wheel. */
void ibp_sim_schedule_far_packet(struct ibp_sim *sim, uint64_t when, uint32_t packet);

/* Take the first event from the heap, which is not empty. */
struct ibp_sim_event ibp_sim_pop_event(struct ibp_sim *sim);

/* Return whether the heap has an event of the present tick. */
static inline bool ibp_sim_has_event(const struct ibp_sim *sim)
{
    return sim->heap_count && sim->heap[0].when <= sim->state.now;
}

/* -- wheel -- */

/* Schedule a packet's arrival at a later tick. */
static inline void ibp_sim_schedule_packet(struct ibp_sim *sim, uint64_t when, uint32_t packet)
{
    const uint32_t number = (uint32_t)when % IBP_SIM_WHEEL;
    struct ibp_sim_bucket *bucket = &sim->bucket[number];

    assert(when > sim->state.now);
    if (when - sim->state.now >= IBP_SIM_WHEEL) {
        ibp_sim_schedule_far_packet(sim, when, packet);
        return;
    }
    sim->packet[packet].next = IBP_SIM_NOTHING;
    if (bucket->first == IBP_SIM_NOTHING) {
        bucket->first = packet;
        sim->bucket_used[number / 64] |= UINT64_C(1) << (number % 64);
    } else {
        sim->packet[bucket->last].next = packet;
    }
    bucket->last = packet;
    sim->in_wheel++;
}

/* Return the tick of the next bucket in use; the wheel is not empty. */
static inline uint64_t ibp_sim_next_bucket(const struct ibp_sim *sim)
{
    const uint64_t now = sim->state.now;
    uint32_t word = ((uint32_t)now & IBP_SIM_WHEEL_MASK) / 64;
    uint64_t bits = sim->bucket_used[word] >> (now % 64), passed = 64 - now % 64;

    if (bits) return now + (uint64_t)__builtin_ctzll(bits);
    for (;;) {
        word = (word + 1) % IBP_SIM_WHEEL_WORDS;
        bits = sim->bucket_used[word];
        if (bits) return now + passed + (uint64_t)__builtin_ctzll(bits);
        passed += 64;
    }
}

/* Take all packets of the present tick from the wheel: the first of a list, or IBP_SIM_NOTHING. */
static inline uint32_t ibp_sim_take_bucket(struct ibp_sim *sim)
{
    const uint32_t number = (uint32_t)sim->state.now & IBP_SIM_WHEEL_MASK;
    const uint32_t first = sim->bucket[number].first;

    sim->bucket[number].first = IBP_SIM_NOTHING;
    sim->bucket_used[number / 64] &= ~(UINT64_C(1) << (number % 64));
    return first;
}

/* Find the first packet in the wheel after *tick and set *tick to its own. Returns IBP_SIM_NOTHING if none is near. */
static inline uint32_t ibp_sim_first_after(const struct ibp_sim *sim, uint64_t *tick)
{
    uint64_t word = (*tick + 1) / 64;
    uint64_t used = sim->bucket_used[word % IBP_SIM_WHEEL_WORDS] & (UINT64_MAX << (*tick + 1) % 64);

    for (unsigned words = 0; words < IBP_SIM_NEAR_WORDS; words++) {
        if (used) {
            *tick = word * 64 + (uint64_t)__builtin_ctzll(used);
            return sim->bucket[*tick & IBP_SIM_WHEEL_MASK].first;
        }
        used = sim->bucket_used[++word % IBP_SIM_WHEEL_WORDS];
    }
    return IBP_SIM_NOTHING;
}

/* Return the tick of the next event, UINT64_MAX if there is none. */
static inline uint64_t ibp_sim_next_tick(const struct ibp_sim *sim)
{
    const uint64_t next = sim->in_wheel ? ibp_sim_next_bucket(sim) : UINT64_MAX;

    return sim->heap_count && sim->heap[0].when < next ? sim->heap[0].when : next;
}

#endif
