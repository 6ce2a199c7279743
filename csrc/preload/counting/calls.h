/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls. An `ibp_call` represents all calls of one MPI operation at one call site of the program. It refers to the
 * counters of its last messages and to its last entry in the ledger, so the next call finds them without a search.
 *
 * A wrapper finds its `ibp_call` by its return address. If sites are not recorded, each operation has only one
 * `ibp_call`.
 *
 * A call through a language binding returns to the same address of the binding for all lines of the program. ibprof
 * finds the `ibp_call` of such a call from the caller of the binding (counting/call_points.h).
 */
#ifndef IBPROF_COUNTING_CALLS_H
#define IBPROF_COUNTING_CALLS_H

#include "counting/context.h"
#include "platform/system.h"
#include "recording/operations.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

/* The communicator, partner and datatype of a call's last entry in the ledger (counting/ledger.h). */
struct ibp_ledger_recent {
    /* The communicator argument; 0 if there is none. */
    long communicator;
    int root;
    /* This rank is the root. */
    bool is_root;
    /* The counter of the entry: bytes and calls. */
    uint64_t *amount;
    /* A predefined datatype and its size, if the handles of this MPI library do not contain the size; otherwise 0. */
    long type;
    uint64_t type_size;
    /* The next element in the list of all elements whose communicator is set. */
    struct ibp_ledger_recent *next;
};

struct ibp_call {
    /* The context of messages sent inside the call. */
    struct ibp_context context;
    struct ibp_ledger_recent ledger;
    /* `time`: the record of the call's time in the present region; NULL until it is known. `time_at_random`: the same
     * record, but only while randomly chosen calls are timed (counting/times.h). */
    struct ibp_time *time, *time_at_random;
    /* For the random choice of timed calls: number of calls before the next timed call, and number of calls after it in
     * the same block of IBP_TIMES_WEIGHT calls. */
    int64_t until_timed, after_timed;
    /* The envelope of the last message. */
    const struct ibp_envelope *last_envelope;
    /* Every call of the operation at this site is timed from entry to return. */
    bool is_timed;
    /* A call took long: the next `watched` calls are timed as a whole, to see whether long calls are frequent.
     * `watch_span`: number of calls to time after the next long call. */
    uint32_t watched, watch_span;
    uint64_t long_ticks;
    /* The next element in the list of calls whose `time` is set. */
    struct ibp_call *next_timed;
    uint32_t site;
    uint16_t operation;
    /* The number of this call; for a call without a site, the operation's number. */
    uint16_t number;
};

/* Calls without a site, by operation. */
extern IBP_INTERNAL struct ibp_call ibp_calls[IBP_OPERATIONS + 1];

/* MPI calls are recorded, and IBPROF_SITES is not 0. */
extern IBP_INTERNAL bool ibp_sites_recorded;

/* The source cannot distinguish calls that send. Their wrappers must therefore set the current call
 * (counting/current_call.h). */
extern IBP_INTERNAL bool ibp_labels_sends;

/* Cache of recently used calls by return address. The index is some bits of the address plus the operation, so an entry
 * with a given address belongs to one operation. */
#define IBP_CALLS_CACHED 512
struct ibp_cached_call {
    /* NULL if the entry is free. */
    const void *address;
    struct ibp_call *call;
};
extern IBP_INTERNAL struct ibp_cached_call ibp_cached_calls[IBP_CALLS_CACHED + IBP_OPERATIONS];

/* Return the offset in bytes from the first entry of an operation to the entry of an address. */
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
    __asm__("" : "+r"(offset)); /* no separate addition: each load adds the offset */
    call = ibp_cached_call_at(operation, offset)->call;
    if (!call) __builtin_unreachable(); /* so that callers do not test for NULL again */
    return call;
}

/* As ibp_call_cached, for several threads in MPI. An entry then keeps its first address. */
static inline struct ibp_call *ibp_call_cached_among_threads(unsigned operation, const void *address)
{
    const struct ibp_cached_call *cached = ibp_cached_call_at(operation, ibp_cached_call_offset(address));

    return IBP_LIKELY(__atomic_load_n(&cached->address, __ATOMIC_ACQUIRE) == address) ? cached->call : NULL;
}

/* Return the call of an operation and a return address, created if needed. While sites are not recorded, return the
 * operation's call without a site. */
struct ibp_call *ibp_call_find(unsigned operation, const void *address);

/* Forget the return addresses in unloaded objects, because another object may be loaded at the same addresses. Called
 * before an object is loaded. Return whether any call was forgotten. */
bool ibp_calls_forget_unloaded(void);

/* Expand to the call of the function that contains this macro. */
#define IBP_CALL_HERE(operation)                                                                                       \
    (IBP_LIKELY(!ibp_sites_recorded) ? &ibp_calls[operation] : ibp_call_find(operation, __builtin_return_address(0)))

/* Expand to the call of the function that contains this macro, if the call is cached; otherwise to NULL. */
#define IBP_CALL_HERE_CACHED(operation)                                                                                \
    (IBP_LIKELY(!ibp_sites_recorded) ? &ibp_calls[operation] : ibp_call_cached(operation, __builtin_return_address(0)))

/* Return whether IBPROF_SITES asks for call sites. */
bool ibp_sites_are_wanted(void);

/* Begin and end recording sites, if they are wanted. */
void ibp_sites_begin(void);
void ibp_sites_end(void);

/* Set up the context of a call whose operation and site are set. Whether the context is open depends on the state of
 * counting. */
void ibp_call_begin(struct ibp_call *call);

/* Return a call by its number. */
struct ibp_call *ibp_call_by_number(unsigned number);

/* Iterate over the calls that have a site: return the call after `call`. Return the first call if `call` is NULL, and
 * NULL after the last call. */
struct ibp_call *ibp_call_next(const struct ibp_call *call);

#endif
