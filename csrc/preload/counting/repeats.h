/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls that repeat the last one at their place: of the same message, small, and neither sampled nor timed. Such a call
 * needs a comparison and a decrement. So a place gets some of the calls that the record of its time and its envelope have
 * left until one is chosen, and gives back what it did not use.
 *
 * A process that is killed has not counted the calls of the places that have some left: at most IBP_REPEATS_MOST each, for
 * each thread.
 *
 * Where several threads may be in MPI, each has places of its own, which it uses without the lock. Others make a new
 * generation, which keeps it from using them until it has taken back its calls.
 */
#ifndef IBPROF_COUNTING_REPEATS_H
#define IBPROF_COUNTING_REPEATS_H

#include "counting/calls.h"
#include "platform/system.h"
#include "recording/operations.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_REPEATS 512
#define IBP_REPEATS_MOST 256

/* Messages of an envelope until the next one that is sampled: those that are left, and the places that were granted others. */
struct ibp_messages_left {
    int64_t left;
    struct ibp_repeat *granted;
};

struct ibp_repeat {
    /* That a call returns to; NULL in a free place. */
    const void *address;
    struct ibp_call *call;
    /* The arguments as passed, of a call that posts a message. */
    long communicator, type;
    int peer, tag;
    /* Number of further calls that need no search. */
    int32_t left;
    /* Items of a message that is too large; 0 of derived datatypes, another of which may have the same handle later. */
    uint32_t large;
    /* The peer and tag of the message's envelope; NULL for a call that posts no message. */
    struct ibp_messages_left *messages;
    /* Where the calls are counted. */
    struct ibp_time *time;
    /* The first value of `left`. */
    int32_t granted;
    /* The next place that was granted some of the same messages. */
    struct ibp_repeat *next;
    /* The next place that is, or was, in use. */
    struct ibp_repeat *next_listed;
    bool is_listed;
    /* Among threads: what the last call here was that is not granted. */
    const void *last_address;
    const struct ibp_messages_left *last_messages;
} __attribute__((aligned(64)));

/* By some bits of the address, plus the operation, so that a place has one operation for an address. An empty table takes
 * its place within calls, and while requests or receives are watched. */
extern IBP_INTERNAL struct ibp_repeat *ibp_repeats, *ibp_repeats_between, ibp_no_repeats[];

/* The places of this thread, and their generation; the present one, which is odd while no place is used. */
extern IBP_INTERNAL IBP_THREAD_LOCAL struct ibp_repeat *ibp_repeats_of_thread;
extern IBP_INTERNAL IBP_THREAD_LOCAL uint64_t ibp_repeats_generation_of_thread;
extern IBP_INTERNAL uint64_t ibp_repeats_generation;

static inline __attribute__((always_inline)) struct ibp_repeat *ibp_repeat_in(struct ibp_repeat *table,
                                                                              unsigned operation, const void *address)
{
    const uintptr_t offset = (uintptr_t)address * 8 & (IBP_REPEATS - 1) * sizeof(struct ibp_repeat);

    /* Neighbouring calls of different operations are scattered. */
    return (struct ibp_repeat *)((char *)table + offset) + operation * 97 % IBP_REPEATS;
}

/* Return the generation that calls of any thread may be granted in; odd while there is none. */
static inline uint64_t ibp_repeats_now(void)
{
    return __atomic_load_n(&ibp_repeats_generation, __ATOMIC_RELAXED);
}

/* Set whether places are used: times and sites are recorded. */
void ibp_repeats_begin(void);
void ibp_repeats_end(void);

/* Choose whether places are used between calls: contexts were opened or closed. */
void ibp_repeats_choose(void);

/* Set the number of requests or receives that are watched. */
enum ibp_watched { IBP_WATCHED_REQUESTS, IBP_WATCHED_RECEIVES, IBP_WATCHED };
void ibp_repeats_set_watched(enum ibp_watched which, uint32_t count);

/* Let a place repeat a call that was counted just now. The place may be in use. One thread is in MPI. */
void ibp_repeat_grant(const void *address, const struct ibp_repeat *repeat);

/* The same among threads, where the call is the second one like it in a row. `generation` was the present one before the
 * call was numbered. The lock must be free. */
void ibp_repeat_grant_among_threads(const void *address, const struct ibp_repeat *repeat, uint64_t generation);

/* Use no place until all calls are taken back, at the next grant. Any thread may call it: objects were unloaded, and others
 * may have their addresses. */
void ibp_repeats_forget_later(void);

/* Take back the calls of all places; the messages of an envelope. Calls of other threads are taken back later, by them. */
void ibp_repeats_take_back(void);
void ibp_messages_take_back(struct ibp_messages_left *messages);

/* Count the calls of places that are not yet taken back in another record. */
void ibp_repeats_move(const struct ibp_time *from, struct ibp_time *into);

#endif
