/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Events sorted by time. Nearly all events are in a wheel, which has a bucket for each of the next ticks. Events after
 * the wheel's last tick are in a heap.
 *
 * The functions of the wheel are inline, because every hop of every packet calls these functions.
 */
#ifndef IBP_SIMULATION_AGENDA_H
#define IBP_SIMULATION_AGENDA_H

#include "simulation/state.h"

enum {
    IBP_SIM_WHEEL_MASK = IBP_SIM_WHEEL - 1,
    /* Number of words of `bucket_used`. */
    IBP_SIM_WHEEL_WORDS = IBP_SIM_WHEEL / 64,
    IBP_SIM_CHUNK_MASK = IBP_SIM_CHUNK - 1
};

/* -- heap -- */

/* Schedule the next action of a process at a later tick. */
void ibp_sim_schedule_process(struct ibp_sim *sim, uint64_t when, uint32_t process);

/* Schedule a packet's arrival at a tick after the end of the wheel. */
void ibp_sim_schedule_far_packet(struct ibp_sim *sim, uint64_t when, struct ibp_sim_packet packet);

/* Remove and return the first event of the heap. The heap must not be empty. */
struct ibp_sim_event ibp_sim_pop_event(struct ibp_sim *sim);

/* Return whether the heap has an event of the present tick. */
static inline bool ibp_sim_has_event(const struct ibp_sim *sim)
{
    return sim->heap_count && sim->heap[0].when <= sim->state.now;
}

/* -- wheel -- */

/* Add a chunk (an array of event slots) to a bucket. The bucket must be empty, or its last chunk full. Return false if
 * memory is exhausted. */
bool ibp_sim_add_chunk(struct ibp_sim *sim, uint32_t bucket);

/* Schedule a packet's arrival at a later tick. */
static inline void ibp_sim_schedule_packet(struct ibp_sim *sim, uint64_t when, struct ibp_sim_packet packet)
{
    const uint32_t number = (uint32_t)when % IBP_SIM_WHEEL;
    struct ibp_sim_bucket *bucket = &sim->bucket[number];

    assert(when > sim->state.now);
    if (when - sim->state.now >= IBP_SIM_WHEEL) {
        ibp_sim_schedule_far_packet(sim, when, packet);
        return;
    }
    if (!(bucket->end & IBP_SIM_CHUNK_MASK) && !ibp_sim_add_chunk(sim, number)) return;
    sim->slot[bucket->end++].packet = packet;
    sim->in_wheel++;
}

/* Add a chunk to the list of free chunks. */
static inline void ibp_sim_drop_chunk(struct ibp_sim *sim, uint32_t chunk)
{
    sim->slot[chunk].next = sim->free_chunk;
    sim->free_chunk = chunk;
}

/* Return the tick of the next bucket with events. The wheel must not be empty. */
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

/* Remove the bucket of the present tick from the wheel, and return it. */
static inline struct ibp_sim_bucket ibp_sim_take_bucket(struct ibp_sim *sim)
{
    const uint32_t number = (uint32_t)sim->state.now & IBP_SIM_WHEEL_MASK;
    const struct ibp_sim_bucket taken = sim->bucket[number];

    sim->bucket[number].end = 0;
    sim->bucket_used[number / 64] &= ~(UINT64_C(1) << (number % 64));
    return taken;
}

/* Return the tick of the next event; UINT64_MAX if no event is scheduled. */
static inline uint64_t ibp_sim_next_tick(const struct ibp_sim *sim)
{
    const uint64_t next = sim->in_wheel ? ibp_sim_next_bucket(sim) : UINT64_MAX;

    return sim->heap_count && sim->heap[0].when < next ? sim->heap[0].when : next;
}

#endif
