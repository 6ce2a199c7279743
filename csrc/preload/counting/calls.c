/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/calls.h"
#include "counting/call_points.h"
#include "counting/caller_chains.h"
#include "counting/context.h"
#include "counting/origins.h"
#include "counting/wrapped_calls.h"
#include "libmpi/callers.h"
#include "libmpi/lock.h"
#include "platform/loaded_objects.h"
#include "platform/memory.h"
#include "platform/text.h"
#include "python/script_frames.h"
#include "recording/objects.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include "ibprof_recording.h"

#include <string.h>

/* Number of entries of the first hash table, which fills one page. */
#define PLACES_FIRST 2048
#define PLACES_MAX (4 * IBP_SITES_MAX)
/* Maximum number of `ibp_call` elements. Each pair of site and operation has one element. */
#define CALLS_MAX (IBP_SITES_MAX + 4 * IBP_OPERATIONS_MAX)
/* Number of `ibp_call` elements that are allocated at a time. */
#define CALLS_OF_PART 64

struct ibp_call ibp_calls[IBP_OPERATIONS + 1];
struct ibp_cached_call ibp_cached_calls[IBP_CALLS_CACHED + IBP_OPERATIONS];
bool ibp_sites_recorded, ibp_labels_sends;

/* The `ibp_call` of each site and operation. An `ibp_call` is never moved or removed. */
static struct {
    struct ibp_call *parts[CALLS_MAX / CALLS_OF_PART];
    /* Hash table by site and operation. An entry is the index of an `ibp_call`, plus 1; 0 if the entry is free. */
    uint16_t *places;
    uint32_t count, capacity;
} calls;

_Static_assert((sizeof(struct ibp_cached_call) & (sizeof(struct ibp_cached_call) - 1)) == 0, "offsets are masked");
_Static_assert(CALLS_MAX + IBP_OPERATIONS < UINT16_MAX && 2 * CALLS_MAX < PLACES_MAX, "numbers of calls fit");

static struct ibp_call *made(uint32_t number)
{
    return &calls.parts[number / CALLS_OF_PART][number % CALLS_OF_PART];
}

static uint16_t *place_of(unsigned operation, uint32_t site)
{
    const uint64_t hash = (((uint64_t)site << 16) + operation) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t place = (uint32_t)(hash >> 40) % calls.capacity;

    for (; calls.places[place]; place = (place + 1) % calls.capacity) {
        const struct ibp_call *call = made(calls.places[place] - 1U);

        if (call->site == site && call->operation == operation) break;
    }
    return &calls.places[place];
}

/* Double the number of hash table entries. The lock must be held. Return false if memory is exhausted, or if the table
 * has its maximum size. */
static bool grow_places(void)
{
    const uint32_t before = calls.capacity, capacity = before ? 2 * before : PLACES_FIRST;
    uint16_t *const old = calls.places, *const places =
                                            capacity > PLACES_MAX ? NULL : ibp_memory_map(capacity * sizeof *places);

    if (!places) return false;
    calls.places = places;
    calls.capacity = capacity;
    for (uint32_t i = 0; i < calls.count; i++) *place_of(made(i)->operation, made(i)->site) = (uint16_t)(i + 1);
    ibp_memory_unmap(old, before * sizeof *places);
    return true;
}

static struct ibp_call *next_call(void)
{
    struct ibp_call **const part = &calls.parts[calls.count / CALLS_OF_PART];

    if (2 * (calls.count + 1) > calls.capacity && !grow_places()) return NULL;
    if (!*part) *part = ibp_memory_map(CALLS_OF_PART * sizeof **part);
    return *part ? made(calls.count) : NULL;
}

bool ibp_sites_are_wanted(void)
{
    return strcmp(ibp_environment("IBPROF_SITES"), "0") != 0;
}

void ibp_sites_begin(void)
{
    if (!ibp_sites_are_wanted()) return;
    ibp_callers_prepare();
    ibp_sites_recorded = ibp_call_points_prepare() && (calls.places || grow_places());
}

void ibp_sites_end(void)
{
    ibp_sites_recorded = false;
}

/* -- finding a call ------------------------------------------------------------------------------------------------ */

struct ibp_call *ibp_call_next(const struct ibp_call *call)
{
    const uint32_t next = call ? (uint32_t)call->number - IBP_OPERATIONS : 0;

    return next < calls.count ? made(next) : NULL;
}

struct ibp_call *ibp_call_by_number(unsigned number)
{
    return number <= IBP_OPERATIONS ? &ibp_calls[number] : made(number - IBP_OPERATIONS - 1);
}

static bool is_passed_on(unsigned operation)
{
    const unsigned needs = ibp_wrapped_calls[operation].needs;

    return needs & IBP_IS_ONLY_TIMED || (needs & IBP_SENDS && !ibp_labels_sends);
}

void ibp_call_begin(struct ibp_call *call)
{
    ibp_context_begin(&call->context, call->operation, call->site, is_passed_on(call->operation));
}

/* Return the `ibp_call` of an operation at a site, created if needed. The lock must be held. */
static struct ibp_call *call_at(unsigned operation, uint32_t site)
{
    const uint16_t number = *place_of(operation, site);
    /* The last IBP_OPERATIONS_MAX elements are reserved for site IBP_SITE_OTHER. */
    const uint32_t most = CALLS_MAX - (site == IBP_SITE_OTHER ? 0 : IBP_OPERATIONS_MAX);
    struct ibp_call *const call = number ? made(number - 1U) : calls.count < most ? next_call() : NULL;

    if (!call) return site == IBP_SITE_OTHER ? &ibp_calls[operation] : call_at(operation, IBP_SITE_OTHER);
    if (number) return call;
    call->site = site;
    call->operation = (uint16_t)operation;
    ibp_call_begin(call);
    *place_of(operation, site) = (uint16_t)(calls.count + 1);
    call->number = (uint16_t)(IBP_OPERATIONS + ++calls.count);
    return call;
}

static void cache(unsigned operation, const void *address, struct ibp_call *call)
{
    struct ibp_cached_call *cached = ibp_cached_call_at(operation, ibp_cached_call_offset(address));

    /* While several threads may be in MPI, do not replace a used entry, because other threads may read the entry. */
    if (ibp_threads_multiple && cached->address) return;
    cached->call = call;
    __atomic_store_n(&cached->address, address, __ATOMIC_RELEASE);
}

/* Return the `ibp_call` of an operation at a call point, and cache the `ibp_call` with a key. */
static struct ibp_call *call_at_place(unsigned operation, const void *key, const struct ibp_call_point *place)
{
    struct ibp_call *call;

    ibp_lock();
    call = call_at(operation, place ? place->site : IBP_SITE_OTHER);
    if (place) cache(operation, key, call);
    ibp_unlock();
    return call;
}

static struct ibp_call *find_cached(unsigned operation, const void *key)
{
    return ibp_threads_multiple ? ibp_call_cached_among_threads(operation, key) : ibp_call_cached(operation, key);
}

static struct ibp_call *find_by_fortran(unsigned operation)
{
    const void *address = ibp_binding_caller();
    struct ibp_call *call;

    if (!address) return &ibp_calls[operation];
    call = find_cached(operation, address);
    return call ? call : call_at_place(operation, address, ibp_call_point_of_address(address));
}

static struct ibp_call *find_by_python(unsigned operation)
{
    struct ibp_script_frame frame;
    struct ibp_call *call;
    const void *key;

    if (!ibp_script_find(&frame)) return &ibp_calls[operation];
    key = ibp_call_point_key_of_script(&frame);
    call = find_cached(operation, key);
    return call ? call : call_at_place(operation, key, ibp_call_point_of_script(&frame));
}

/* With IBPROF_CALLERS, the keys of the cache are chains of callers instead of return addresses. Every call walks the
 * stack. */
static struct ibp_call *find_with_callers(unsigned operation, const void *address)
{
    struct ibp_caller_chain chain;
    struct ibp_call *call;

    if (!ibp_caller_chain_find(address, &chain)) return &ibp_calls[operation];
    call = find_cached(operation, chain.key);
    return call ? call : call_at_place(operation, chain.key, ibp_call_point_of_chain(&chain));
}

static struct ibp_call *find_uncached(unsigned operation, const void *address)
{
    const struct ibp_call_point *place = ibp_call_point_of_address(address);

    switch (place ? place->language : IBP_LANGUAGE_C) {
    case IBP_LANGUAGE_FORTRAN:
        return find_by_fortran(operation);
    case IBP_LANGUAGE_PYTHON:
        return find_by_python(operation);
    default:
        return call_at_place(operation, address, place);
    }
}

struct ibp_call *ibp_call_find(unsigned operation, const void *address)
{
    struct ibp_call *call;

    if (!ibp_sites_recorded || !ibp_is_active()) return &ibp_calls[operation];
    if (IBP_UNLIKELY(ibp_callers_recorded)) return find_with_callers(operation, address);
    call = find_cached(operation, address);
    return call ? call : find_uncached(operation, address);
}

bool ibp_calls_forget_unloaded(void)
{
    static unsigned long long before;
    const unsigned long long unloaded = ibp_sites_recorded ? ibp_objects_unloaded() : before;
    struct ibp_object_place where;

    if (IBP_LIKELY(unloaded == before)) return false;
    ibp_lock();
    before = unloaded;
    for (size_t i = 0; i < sizeof ibp_cached_calls / sizeof *ibp_cached_calls; i++) {
        struct ibp_cached_call *const cached = &ibp_cached_calls[i];

        if (ibp_call_point_key_is_address(cached->address) && !ibp_object_find(cached->address, &where))
            __atomic_store_n(&cached->address, NULL, __ATOMIC_RELEASE);
    }
    ibp_call_points_forget_unloaded();
    ibp_unlock();
    return true;
}
