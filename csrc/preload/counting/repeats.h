/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Repeated calls. A call repeats the previous call at its call site if its message is small and its arguments are the
 * same. Such a call is only counted; it is neither sampled nor timed. It needs only a comparison and a decrement. A
 * call site is granted a number of calls in advance: at most as many as remain before the next call to be timed or the
 * next message to be sampled. Granted calls that were not made are taken back.
 *
 * When a process is killed, the granted calls that were made are not yet counted: at most IBP_REPEATS_MOST calls for
 * each entry of the table and each thread.
 *
 * Where several threads may be in MPI, each thread has a separate table and uses it without the lock. Any thread can
 * start a new generation. Then each thread takes back its granted calls before it uses its table again.
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

/* `left`: number of messages of an envelope before the next sampled message, not counting granted messages. `granted`:
 * list of the entries to which some of these messages were granted. */
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
    /* Number of granted calls that were not made yet. */
    int32_t left;
    /* A message with at least this many items is large. 0 marks a derived datatype. MPI may reuse the handle of a
     * derived datatype for another datatype, so its size is looked up at each call. */
    uint32_t large;
    /* The remaining messages of the envelope; NULL for a call that posts no message. */
    struct ibp_messages_left *messages;
    /* The time record that counts the calls. */
    struct ibp_time *time;
    /* The initial value of `left`. */
    int32_t granted;
    /* The next entry with granted messages of the same envelope. */
    struct ibp_repeat *next;
    /* The next element in the list of entries that are or were in use. */
    struct ibp_repeat *next_listed;
    bool is_listed;
    /* With several threads: the return address of the last call that was not granted in advance, and the `messages` of
     * its envelope. */
    const void *last_address;
    const struct ibp_messages_left *last_messages;
} __attribute__((aligned(64)));

/* The table. The index is some bits of the address plus the operation, so an entry with a given address belongs to one
 * operation. `ibp_repeats` is the empty table within calls, and while requests or receives are watched. */
extern IBP_INTERNAL struct ibp_repeat *ibp_repeats, *ibp_repeats_between, ibp_no_repeats[];

/* `ibp_repeats_of_thread`: the table of this thread. `ibp_repeats_generation_of_thread`: the generation in which its
 * calls were granted. `ibp_repeats_generation`: the present generation; odd while no table is used. */
extern IBP_INTERNAL IBP_THREAD_LOCAL struct ibp_repeat *ibp_repeats_of_thread;
extern IBP_INTERNAL IBP_THREAD_LOCAL uint64_t ibp_repeats_generation_of_thread;
extern IBP_INTERNAL uint64_t ibp_repeats_generation;

static inline __attribute__((always_inline)) struct ibp_repeat *ibp_repeat_in(struct ibp_repeat *table,
                                                                              unsigned operation, const void *address)
{
    const uintptr_t offset = (uintptr_t)address * 8 & (IBP_REPEATS - 1) * sizeof(struct ibp_repeat);

    /* Spread calls at close addresses over the table if their operations differ. */
    return (struct ibp_repeat *)((char *)table + offset) + operation * 97 % IBP_REPEATS;
}

/* Return the present generation. An odd number marks that no calls may be granted. */
static inline uint64_t ibp_repeats_now(void)
{
    return __atomic_load_n(&ibp_repeats_generation, __ATOMIC_RELAXED);
}

/* Begin and end granting calls. Calls are granted only if times and sites are recorded. */
void ibp_repeats_begin(void);
void ibp_repeats_end(void);

/* Decide again whether the table may be used between calls, after contexts were opened or closed. */
void ibp_repeats_choose(void);

/* Set the number of watched requests or receives. While there are any, no calls are granted. */
enum ibp_watched { IBP_WATCHED_REQUESTS, IBP_WATCHED_RECEIVES, IBP_WATCHED };
void ibp_repeats_set_watched(enum ibp_watched which, uint32_t count);

/* Grant repetitions of the call that was counted last. If the entry already contains a grant for another call, this
 * grant is replaced. Only for one thread at a time in MPI. */
void ibp_repeat_grant(const void *address, const struct ibp_repeat *repeat);

/* As ibp_repeat_grant, for several threads in MPI. Calls are granted after two similar calls in a row. `generation`:
 * the generation before the call's message was numbered. The lock must be free. */
void ibp_repeat_grant_among_threads(const void *address, const struct ibp_repeat *repeat, uint64_t generation);

/* Stop using the table until the next grant, which first takes back all granted calls. Needed after objects were
 * unloaded, because other objects may be loaded at the same addresses. Any thread may call this function. */
void ibp_repeats_forget_later(void);

/* Take back all granted calls, or the granted messages of an envelope. Other threads take back their granted calls
 * later. */
void ibp_repeats_take_back(void);
void ibp_messages_take_back(struct ibp_messages_left *messages);

/* Count the granted calls that belong to the time record `from` in the time record `into` instead. */
void ibp_repeats_move(const struct ibp_time *from, struct ibp_time *into);

#endif
