/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls that repeat the last call at their place: they have the same small message, and are neither sampled nor timed.
 * Such a call needs only a comparison and a decrement. A place gets a number of calls in advance, at most as many as
 * remain until its time record or its envelope chooses a call. It gives back the calls that it did not use.
 *
 * When a process is killed, the calls of places with granted calls are missing: at most IBP_REPEATS_MOST for each place
 * and thread.
 *
 * Where several threads may be in MPI, each thread has its own places and uses them without the lock. Another thread
 * can start a new generation: a thread then takes back its calls before it uses its places again.
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

/* Messages of an envelope until the next sampled one: the number that is left, and the list of places that were granted
 * some of them. */
struct ibp_messages_left {
    int64_t left;
    struct ibp_repeat *granted;
};

struct ibp_repeat {
    /* Return address of a call; NULL in a free place. */
    const void *address;
    struct ibp_call *call;
    /* The arguments as passed, for a call that posts a message. */
    long communicator, type;
    int peer, tag;
    /* Number of further calls without a search. */
    int32_t left;
    /* A message with at least this many items is too large; 0 for derived datatypes, as another datatype may have their
     * handle later. */
    uint32_t large;
    /* The remaining messages of the message's envelope; NULL for a call that posts no message. */
    struct ibp_messages_left *messages;
    /* The time record that counts the calls. */
    struct ibp_time *time;
    /* The initial value of `left`. */
    int32_t granted;
    /* The next place with granted messages of the same envelope. */
    struct ibp_repeat *next;
    /* The next place that is or was in use. */
    struct ibp_repeat *next_listed;
    bool is_listed;
    /* With several threads: the address and the envelope's messages of the last call here that was not granted. */
    const void *last_address;
    const struct ibp_messages_left *last_messages;
} __attribute__((aligned(64)));

/* The index is some bits of the address plus the operation, so that a place has one operation for an address. An empty
 * table replaces this one within calls, and while requests or receives are watched. */
extern IBP_INTERNAL struct ibp_repeat *ibp_repeats, *ibp_repeats_between, ibp_no_repeats[];

/* The places of this thread and their generation; the present generation, which is odd while no place is used. */
extern IBP_INTERNAL IBP_THREAD_LOCAL struct ibp_repeat *ibp_repeats_of_thread;
extern IBP_INTERNAL IBP_THREAD_LOCAL uint64_t ibp_repeats_generation_of_thread;
extern IBP_INTERNAL uint64_t ibp_repeats_generation;

static inline __attribute__((always_inline)) struct ibp_repeat *ibp_repeat_in(struct ibp_repeat *table,
                                                                              unsigned operation, const void *address)
{
    const uintptr_t offset = (uintptr_t)address * 8 & (IBP_REPEATS - 1) * sizeof(struct ibp_repeat);

    /* Scatter neighbouring calls of different operations. */
    return (struct ibp_repeat *)((char *)table + offset) + operation * 97 % IBP_REPEATS;
}

/* Return the generation in which calls of any thread may be granted; odd while there is none. */
static inline uint64_t ibp_repeats_now(void)
{
    return __atomic_load_n(&ibp_repeats_generation, __ATOMIC_RELAXED);
}

/* Set whether places are used: they are used where times and sites are recorded. */
void ibp_repeats_begin(void);
void ibp_repeats_end(void);

/* Choose whether places are used between calls, after contexts were opened or closed. */
void ibp_repeats_choose(void);

/* Set the number of watched requests or receives. */
enum ibp_watched { IBP_WATCHED_REQUESTS, IBP_WATCHED_RECEIVES, IBP_WATCHED };
void ibp_repeats_set_watched(enum ibp_watched which, uint32_t count);

/* Let a place repeat the call that was counted last. The place may be in use. One thread is in MPI. */
void ibp_repeat_grant(const void *address, const struct ibp_repeat *repeat);

/* As ibp_repeat_grant, with several threads in MPI, at the second similar call in a row. `generation` is the value
 * before the call was numbered. The lock must be free. */
void ibp_repeat_grant_among_threads(const void *address, const struct ibp_repeat *repeat, uint64_t generation);

/* Use no place until all calls are taken back, at the next grant. Any thread may call it after objects were unloaded,
 * because other objects may have their addresses. */
void ibp_repeats_forget_later(void);

/* Take back the calls of all places, or the messages of an envelope. Other threads take back their calls later. */
void ibp_repeats_take_back(void);
void ibp_messages_take_back(struct ibp_messages_left *messages);

/* Count calls that places have not yet given back in another record. */
void ibp_repeats_move(const struct ibp_time *from, struct ibp_time *into);

#endif
