/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * An `ibp_call` represents all calls of one MPI operation at one call site of the program. An `ibp_call` points to its
 * last counters and its last ledger entry, so that the next call needs no search.
 *
 * A wrapper finds the `ibp_call` from the wrapper's return address. If sites are not recorded, each operation has only
 * one `ibp_call`.
 *
 * If a program calls MPI through a Fortran or Python binding, all calls have the same return address. ibprof then finds
 * the `ibp_call` from the binding's caller (counting/call_points.h).
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
    /* The communicator argument; 0 before the first entry. */
    long communicator;
    int root;
    /* True if this rank is the root. */
    bool is_root;
    /* Pointer to the bytes and the number of calls of the ledger entry. */
    uint64_t *amount;
    /* `type`: the last predefined datatype. `type_size`: its size in bytes. If ibprof reads the sizes of datatypes from
     * the objects of Open MPI, `type` and `type_size` are 0. */
    long type;
    uint64_t type_size;
    /* The next element of the list of all elements whose communicator is not 0. */
    struct ibp_ledger_recent *next;
};

struct ibp_call {
    /* The context of messages sent inside the call. */
    struct ibp_context context;
    struct ibp_ledger_recent ledger;
    /* `time`: the record of the call's times in the present region; NULL before the first timed call. `time_at_random`:
     * equal to `time` while randomly chosen calls are timed (counting/times.h); otherwise NULL. */
    struct ibp_time *time, *time_at_random;
    /* In each block of IBP_TIMES_WEIGHT calls, one random call is timed. `until_timed`: number of calls before the
     * timed call of the block. `after_timed`: number of calls of the block after the timed call. */
    int64_t until_timed, after_timed;
    const struct ibp_envelope *last_envelope;
    /* True if every call of the operation at this site is timed from entry to return. */
    bool is_timed;
    /* `watched`: number of next calls that are timed from entry to return after a long call, to detect frequent long
     * calls. `watch_span`: initial value of `watched` after the next long call. */
    uint32_t watched, watch_span;
    uint64_t long_ticks;
    /* The next element in the list of calls whose `time` is set. */
    struct ibp_call *next_timed;
    uint32_t site;
    uint16_t operation;
    /* The number of an element of ibp_calls is its operation. */
    uint16_t number;
};

/* The `ibp_call` of calls without a recorded site, by operation. */
extern IBP_INTERNAL struct ibp_call ibp_calls[IBP_OPERATIONS + 1];

/* True if MPI calls are recorded, and IBPROF_SITES is not 0. */
extern IBP_INTERNAL bool ibp_sites_recorded;

/* True if the source cannot see which call sent a message. The wrappers of all sending calls must then set the current
 * call (counting/current_call.h). */
extern IBP_INTERNAL bool ibp_labels_sends;

/* Cache of recently used calls by return address. The index is the operation plus some bits of the address. Therefore
 * each pair of address and operation has only one possible entry. */
#define IBP_CALLS_CACHED 512
struct ibp_cached_call {
    /* NULL if the entry is free. */
    const void *address;
    struct ibp_call *call;
};
extern IBP_INTERNAL struct ibp_cached_call ibp_cached_calls[IBP_CALLS_CACHED + IBP_OPERATIONS];

/* Return where the entry of an address is: the offset in bytes from &ibp_cached_calls[operation]. */
static inline uintptr_t ibp_cached_call_offset(const void *address)
{
    return (uintptr_t)address & (IBP_CALLS_CACHED - 1) * sizeof(struct ibp_cached_call);
}

static inline struct ibp_cached_call *ibp_cached_call_at(unsigned operation, uintptr_t offset)
{
    return (struct ibp_cached_call *)((char *)&ibp_cached_calls[operation] + offset);
}

/* Return the cached `ibp_call` of an operation and a return address; NULL if none is cached. */
static inline __attribute__((always_inline)) struct ibp_call *ibp_call_cached(unsigned operation, const void *address)
{
    uintptr_t offset = ibp_cached_call_offset(address);
    struct ibp_call *call;

    if (IBP_UNLIKELY(ibp_cached_call_at(operation, offset)->address != address)) return NULL;
    __asm__("" : "+r"(offset)); /* so the compiler emits no separate addition of the offset */
    call = ibp_cached_call_at(operation, offset)->call;
    if (!call) __builtin_unreachable(); /* so the compiler omits tests for NULL in callers */
    return call;
}

/* As ibp_call_cached, for several threads in MPI. While several threads are in MPI, the address of an entry does not
 * change. */
static inline struct ibp_call *ibp_call_cached_among_threads(unsigned operation, const void *address)
{
    const struct ibp_cached_call *cached = ibp_cached_call_at(operation, ibp_cached_call_offset(address));

    return IBP_LIKELY(__atomic_load_n(&cached->address, __ATOMIC_ACQUIRE) == address) ? cached->call : NULL;
}

/* Return the `ibp_call` of an operation and a return address, created if needed. While sites are not recorded, return
 * &ibp_calls[operation]. */
struct ibp_call *ibp_call_find(unsigned operation, const void *address);

/* Before an object is loaded: forget the return addresses in unloaded objects, because the new object may have the same
 * addresses. Return whether an object was unloaded since the previous call of this function. */
bool ibp_calls_forget_unloaded(void);

/* Expand to the `ibp_call` of the wrapper that contains this macro. */
#define IBP_CALL_HERE(operation)                                                                                       \
    (IBP_LIKELY(!ibp_sites_recorded) ? &ibp_calls[operation] : ibp_call_find(operation, __builtin_return_address(0)))

/* Expand to the cached `ibp_call` of the wrapper that contains this macro; to NULL if none is cached. */
#define IBP_CALL_HERE_CACHED(operation)                                                                                \
    (IBP_LIKELY(!ibp_sites_recorded) ? &ibp_calls[operation] : ibp_call_cached(operation, __builtin_return_address(0)))

bool ibp_sites_are_wanted(void);

/* Begin recording call sites, if IBPROF_SITES asks for them; end recording call sites. */
void ibp_sites_begin(void);
void ibp_sites_end(void);

/* Set up the context of an `ibp_call` whose operation and site are set. */
void ibp_call_begin(struct ibp_call *call);

struct ibp_call *ibp_call_by_number(unsigned number);

/* Return the next `ibp_call` with a site, after `call`. Return the first element if `call` is NULL, and NULL after the
 * last element. */
struct ibp_call *ibp_call_next(const struct ibp_call *call);

#endif
