/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A call repeats the previous call at its call site if it posts no message, or a small message with the same
 * communicator, datatype, peer and tag. A repeated call is neither sampled nor timed, and costs a comparison and a
 * decrement. Before the calls happen, ibprof decides how many calls a call site may repeat in this way: the granted
 * calls. The granted calls end before the site's next call that must be timed or sampled. Later, ibprof counts the
 * granted calls that the program made, and takes back the granted calls that the program did not make.
 *
 * If a process is killed, the recording lacks at most IBP_REPEATS_MOST calls for each entry of each thread's table.
 *
 * If several threads may be in MPI, each thread uses a separate table, without the lock. Any thread can start a new
 * generation. In a new generation, each thread takes back its granted calls before it uses its table again.
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

/* `left`: number of messages of an envelope before the next sampled message, not counting the granted messages.
 * `granted`: list of the entries with granted messages of the envelope. */
struct ibp_messages_left {
    int64_t left;
    struct ibp_repeat *granted;
};

struct ibp_repeat {
    /* Return address of a call; NULL if the entry is free. */
    const void *address;
    struct ibp_call *call;
    /* The arguments of a call that posts a message. */
    long communicator, type;
    int peer, tag;
    /* Number of granted calls that the program has not made so far. */
    int32_t left;
    /* A message with at least this many items is large. 0 marks a derived datatype. The size of a derived datatype is
     * read at each call, because MPI may reuse its handle for another datatype. */
    uint32_t large;
    /* Counts the envelope's messages before the next sampled message; NULL for a call that posts no message. */
    struct ibp_messages_left *messages;
    /* The time record that counts the granted calls that the program makes. */
    struct ibp_time *time;
    /* Number of calls that were granted: the initial value of `left`. */
    int32_t granted;
    /* The next entry with granted messages of the same envelope. */
    struct ibp_repeat *next;
    /* The next element of the table's list of used entries. */
    struct ibp_repeat *next_listed;
    bool is_listed;
    /* With several threads in MPI: return address and envelope of the last call that was not granted in advance. */
    const void *last_address;
    const struct ibp_messages_left *last_messages;
} __attribute__((aligned(64)));

/* The table. `ibp_repeats`: the present table, which is the empty table `ibp_no_repeats` inside calls.
 * `ibp_repeats_between`: the table between calls; empty while ibprof must not grant calls. */
extern IBP_INTERNAL struct ibp_repeat *ibp_repeats, *ibp_repeats_between, ibp_no_repeats[];

/* `ibp_repeats_of_thread`: the table of this thread. `ibp_repeats_generation_of_thread`: the generation in which the
 * calls of this table were granted. `ibp_repeats_generation`: the present generation; odd while no calls may be
 * granted. */
extern IBP_INTERNAL IBP_THREAD_LOCAL struct ibp_repeat *ibp_repeats_of_thread;
extern IBP_INTERNAL IBP_THREAD_LOCAL uint64_t ibp_repeats_generation_of_thread;
extern IBP_INTERNAL uint64_t ibp_repeats_generation;

static inline __attribute__((always_inline)) struct ibp_repeat *ibp_repeat_in(struct ibp_repeat *table,
                                                                              unsigned operation, const void *address)
{
    const uintptr_t offset = (uintptr_t)address * 8 & (IBP_REPEATS - 1) * sizeof(struct ibp_repeat);

    /* If two operations have close return addresses, their entries are far apart. */
    return (struct ibp_repeat *)((char *)table + offset) + operation * 97 % IBP_REPEATS;
}

/* Return the present generation. While the number is odd, no calls may be granted. */
static inline uint64_t ibp_repeats_now(void)
{
    return __atomic_load_n(&ibp_repeats_generation, __ATOMIC_RELAXED);
}

/* Begin and end the granting of repeated calls. Granting requires that times and sites are recorded. */
void ibp_repeats_begin(void);
void ibp_repeats_end(void);

/* After contexts (counting/contexts.h) were opened or closed: set `ibp_repeats_between`. */
void ibp_repeats_choose(void);

/* Set the number of open requests or of waiting receives. Calls are granted only while both numbers are 0. */
enum ibp_watched { IBP_WATCHED_REQUESTS, IBP_WATCHED_RECEIVES, IBP_WATCHED };
void ibp_repeats_set_watched(enum ibp_watched which, uint32_t count);

/* Grant repetitions of the call that was counted last. If the call's entry of the table contains granted repetitions of
 * another call, take these repetitions back. Call this only while at most one thread can be in MPI. */
void ibp_repeat_grant(const void *address, const struct ibp_repeat *repeat);

/* Like ibp_repeat_grant, but for several threads in MPI. Grant only if the last two calls of the table's entry have the
 * same return address and envelope. `generation`: value of `ibp_repeats_generation` before the call's message was
 * numbered. The lock must be free. */
void ibp_repeat_grant_among_threads(const void *address, const struct ibp_repeat *repeat, uint64_t generation);

/* After objects were unloaded: stop using the table, because other objects may be loaded at the same addresses. Before
 * the next grant, ibprof takes back all granted calls. Any thread may call this function. */
void ibp_repeats_forget_later(void);

/* ibp_repeats_take_back: take back all granted calls. ibp_messages_take_back: take back the granted messages of an
 * envelope. Other threads take back their granted calls later. */
void ibp_repeats_take_back(void);
void ibp_messages_take_back(struct ibp_messages_left *messages);

/* Count the granted calls of time record `from` in time record `into` instead. */
void ibp_repeats_move(const struct ibp_time *from, struct ibp_time *into);

#endif
