/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls: an operation at a call site, which is the place in the program from which it calls MPI. A call keeps the
 * counters of its last messages and its last entry in the ledger, so that the next call finds them without a search.
 *
 * A wrapper finds its call by its return address. Where sites are not recorded, each operation has one call, without a
 * site.
 *
 * Calls through a language binding return to the binding, at one address for all the program's lines. They are looked
 * up by the caller of the binding (counting/call_points.h).
 */
#ifndef IBPROF_COUNTING_CALLS_H
#define IBPROF_COUNTING_CALLS_H

#include "counting/context.h"
#include "platform/system.h"
#include "recording/operations.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

/* The partner and the datatype of a call's last entry in the ledger (counting/ledger.h). */
struct ibp_ledger_recent {
    /* The communicator as passed; 0 if there is none. */
    long communicator;
    int root;
    /* This rank is the root. */
    bool is_root;
    /* Bytes and calls. */
    uint64_t *amount;
    /* A predefined datatype as passed, and its size, where datatypes do not show it; otherwise 0. */
    long type;
    uint64_t type_size;
    /* The next element in the list of elements with a communicator. */
    struct ibp_ledger_recent *next;
};

struct ibp_call {
    /* The context of messages sent inside the call. */
    struct ibp_context context;
    struct ibp_ledger_recent ledger;
    /* While times are recorded, in the present region: the record of the call's time, NULL where it is unknown; and the
     * record while calls are timed at random (counting/times.h). */
    struct ibp_time *time, *time_at_random;
    /* Calls timed at random: number of calls until the next timed call, and number of calls after it in the same
     * block. */
    int64_t until_timed, after_timed;
    /* The envelope of the last message. */
    const struct ibp_envelope *last_envelope;
    /* Each call is timed as a whole. */
    bool is_timed;
    /* Calls timed at random in the present region. A call took long; the next `watched` calls show whether this was by
     * chance. `watch_span`: number of calls to watch after the next long call. */
    uint32_t watched, watch_span;
    uint64_t long_ticks;
    /* The next call in the list of calls with a known record. */
    struct ibp_call *next_timed;
    uint32_t site;
    uint16_t operation;
    /* The operation's number for a call without a site. */
    uint16_t number;
};

/* Calls without a site, by operation. */
extern IBP_INTERNAL struct ibp_call ibp_calls[IBP_OPERATIONS + 1];

/* Sites are recorded: calls are recorded, and IBPROF_SITES is not 0. */
extern IBP_INTERNAL bool ibp_sites_recorded;

/* Set where calls that send must be entered (counting/current_call.h), because the source cannot distinguish them. */
extern IBP_INTERNAL bool ibp_labels_sends;

/* Recently used calls by return address. The index is some bits of the address plus the operation, so that a place has
 * one operation for an address. */
#define IBP_CALLS_CACHED 512
struct ibp_cached_call {
    /* NULL in a free place. */
    const void *address;
    struct ibp_call *call;
};
extern IBP_INTERNAL struct ibp_cached_call ibp_cached_calls[IBP_CALLS_CACHED + IBP_OPERATIONS];

/* Return the offset in bytes from the operation's first place to the place of an address. */
static inline uintptr_t ibp_cached_call_offset(const void *address)
{
    return (uintptr_t)address & (IBP_CALLS_CACHED - 1) * sizeof(struct ibp_cached_call);
}

static inline struct ibp_cached_call *ibp_cached_call_at(unsigned operation, uintptr_t offset)
{
    return (struct ibp_cached_call *)((char *)&ibp_cached_calls[operation] + offset);
}

/* Return the cached call of an operation and a return address; NULL if it is not cached. */
static inline __attribute__((always_inline)) struct ibp_call *ibp_call_cached(unsigned operation, const void *address)
{
    uintptr_t offset = ibp_cached_call_offset(address);
    struct ibp_call *call;

    if (IBP_UNLIKELY(ibp_cached_call_at(operation, offset)->address != address)) return NULL;
    __asm__("" : "+r"(offset)); /* the sum is not kept in a register: both loads can add */
    call = ibp_cached_call_at(operation, offset)->call;
    if (!call) __builtin_unreachable(); /* saves the callers a second test */
    return call;
}

/* As ibp_call_cached, with several threads in MPI: a place then keeps its first address. */
static inline struct ibp_call *ibp_call_cached_among_threads(unsigned operation, const void *address)
{
    const struct ibp_cached_call *cached = ibp_cached_call_at(operation, ibp_cached_call_offset(address));

    return IBP_LIKELY(__atomic_load_n(&cached->address, __ATOMIC_ACQUIRE) == address) ? cached->call : NULL;
}

/* Return the same call, created if needed; without a site while sites are not recorded. */
struct ibp_call *ibp_call_find(unsigned operation, const void *address);

/* Forget calls from unloaded objects, because other objects may have their addresses. Called before an object is
 * loaded. Return whether any call was forgotten. */
bool ibp_calls_forget_unloaded(void);

/* Expand to the call of the function that contains this macro. */
#define IBP_CALL_HERE(operation)                                                                                       \
    (IBP_LIKELY(!ibp_sites_recorded) ? &ibp_calls[operation] : ibp_call_find(operation, __builtin_return_address(0)))

/* Expand to that call if no search is needed, and otherwise to NULL. */
#define IBP_CALL_HERE_CACHED(operation)                                                                                \
    (IBP_LIKELY(!ibp_sites_recorded) ? &ibp_calls[operation] : ibp_call_cached(operation, __builtin_return_address(0)))

/* Return whether the user wants sites: IBPROF_SITES. */
bool ibp_sites_are_wanted(void);

/* Begin and end recording sites, if they are wanted. */
void ibp_sites_begin(void);
void ibp_sites_end(void);

/* Set up the context of a call with an operation and a site, for the present state of counting. */
void ibp_call_begin(struct ibp_call *call);

/* Return a call by its number. */
struct ibp_call *ibp_call_by_number(unsigned number);

/* Return the next call with a site: the first one after NULL, and NULL after the last one. */
struct ibp_call *ibp_call_next(const struct ibp_call *call);

#endif
