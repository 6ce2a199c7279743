/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/verbs/routes.h"
#include "counting/process.h"
#include "counting/verbs_lock.h"
#include "platform/memory.h"
#include "platform/text.h"
#include "recording/ports.h"

#include <string.h>

_Static_assert(offsetof(struct ibp_route, shared) == 64, "a post accesses one cache line");

#define LINE 64
#define POOL_BYTES (1 << 16)
#define FIRST_SLOTS 256
#define WRITERS_MAX 1024

struct ibp_route_table *ibp_queue_pairs, *ibp_address_handles;
IBP_THREAD_LOCAL char ibp_thread_mark;

static struct ibp_route *free_routes;

void *ibp_pool_take(size_t bytes)
{
    static char *pool;
    static size_t left;
    void *taken;

    bytes = (bytes + LINE - 1) / LINE * LINE;
    if (bytes > left) {
        pool = ibp_memory_map(POOL_BYTES);
        left = pool ? POOL_BYTES : 0;
        if (bytes > left) return NULL;
    }
    taken = pool;
    pool += bytes;
    left -= bytes;
    return taken;
}

const struct ibp_verbs_provider *ibp_verbs_provider_share(const struct ibp_verbs_provider *functions)
{
    static const struct ibp_verbs_provider *first;
    struct ibp_verbs_provider *added;

    for (const struct ibp_verbs_provider *known = first; known; known = known->next)
        if (!memcmp(known, functions, offsetof(struct ibp_verbs_provider, next))) return known;
    added = ibp_pool_take(sizeof *added);
    if (!added) return NULL;
    *added = *functions;
    added->next = first;
    first = added;
    return added;
}

/* -- the tables ---------------------------------------------------------------------------------------------------- */

static size_t table_bytes(uint64_t slots)
{
    return sizeof(struct ibp_route_table) + slots * sizeof(struct ibp_route_slot);
}

static struct ibp_route_slot *probe(struct ibp_route_table *table, const void *address)
{
    uint64_t place = ibp_route_place(address);

    while (table->slots[place & table->mask].address && table->slots[place & table->mask].address != address) place++;
    return &table->slots[place & table->mask];
}

/* Ensure that the table has space for one more address: create a larger table if needed. The former table is not freed,
 * because another thread may be reading it. Return false if memory is exhausted. */
static bool ensure_capacity(struct ibp_route_table **which)
{
    const struct ibp_route_table *old = *which;
    struct ibp_route_table *table;
    uint64_t live = 0, slots = FIRST_SLOTS;

    if (old && 2 * old->used <= old->mask) return true;
    for (uint64_t i = 0; old && i <= old->mask; i++) live += old->slots[i].route != NULL;
    while (slots < 4 * live) slots *= 2;
    table = ibp_memory_map(table_bytes(slots));
    if (!table) return old && old->used < old->mask;
    table->mask = slots - 1;
    for (uint64_t i = 0; old && i <= old->mask; i++)
        if (old->slots[i].route) {
            *probe(table, old->slots[i].address) = old->slots[i];
            table->used++;
        }
    __atomic_store_n(which, table, __ATOMIC_RELEASE);
    return true;
}

struct ibp_route *ibp_route_make(struct ibp_route_table **which, const void *address)
{
    struct ibp_route *route = ibp_route_find(which, address);
    struct ibp_verbs_build *parked;
    struct ibp_route_slot *slot;

    if (route) return route;
    if (!ensure_capacity(which)) return NULL;
    route = free_routes;
    if (route)
        free_routes = route->next_free;
    else
        route = ibp_pool_take(sizeof *route);
    if (!route) return NULL;
    parked = route->parked; /* keep the memory of `parked` for reuse */
    memset(route, 0, sizeof *route);
    route->parked = parked;
    route->pair = IBP_NO_PAIR;
    slot = probe(*which, address);
    __atomic_store_n(&slot->route, route, __ATOMIC_RELEASE);
    if (!slot->address) {
        (*which)->used++;
        __atomic_store_n(&slot->address, address, __ATOMIC_RELEASE);
    }
    return route;
}

void ibp_route_forget(struct ibp_route_table **which, const void *address)
{
    struct ibp_route *route = ibp_route_find(which, address);

    if (!route) return;
    __atomic_store_n(&probe(*which, address)->route, NULL, __ATOMIC_RELEASE);
    route->next_free = free_routes;
    free_routes = route;
}

void ibp_route_redirect(struct ibp_route *route, const struct ibp_verbs_path *path)
{
    route->connected = path != NULL;
    if (path) route->path = *path;
    route->pair = IBP_NO_PAIR;
    for (unsigned opcode = 0; opcode < IBP_OPCODES; opcode++) {
        __atomic_store_n(&route->own[opcode], NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&route->shared[opcode], NULL, __ATOMIC_RELAXED);
    }
}

/* -- counting on the slow path ------------------------------------------------------------------------------------- */

/* Return the number of this thread, from 1; IBP_WRITER_SHARED if there are too many threads. The address of
 * ibp_thread_mark identifies a thread. A new thread has the number of an ended thread if its ibp_thread_mark has the
 * same address. */
static uint32_t find_writer(void)
{
    static const void *marks[WRITERS_MAX];
    static uint32_t count;

    for (uint32_t i = 0; i < count; i++)
        if (marks[i] == &ibp_thread_mark) return i + 1;
    if (count == WRITERS_MAX) return IBP_WRITER_SHARED;
    marks[count] = &ibp_thread_mark;
    return ++count;
}

static void describe_pair(const struct ibp_route *route, struct ibp_pair *pair)
{
    const char *device = route->context ? route->context->device : NULL;
    const struct ibp_verbs_path *path = &route->path;

    memset(pair, 0, sizeof *pair);
    if (!device) return;
    ibp_text_copy(pair->device, sizeof pair->device, device + IBP_VERBS_DEVICE_NAME_OFFSET);
    pair->port = path->port;
    if (!route->connected) return;
    /* On Ethernet, LIDs have no meaning. */
    if (!ibp_port_is_ethernet(pair->device, path->port)) {
        const uint32_t base = ibp_port_lid(pair->device, path->port);

        pair->lid = base ? base | path->path_bits : 0;
        pair->remote_lid = path->remote_lid;
    }
    if (path->is_global) {
        ibp_port_gid(pair->device, path->port, path->gid_index, pair->gid);
        memcpy(pair->remote_gid, path->remote_gid, sizeof pair->remote_gid);
    }
}

void ibp_route_note_seen(struct ibp_route *route)
{
    if (__atomic_exchange_n(&route->direct, false, __ATOMIC_RELAXED)) ibp_transfers_note_unseen(-1);
}

/* Add the requests to this thread's record if the thread owns the route; otherwise to a shared record. */
static void find_and_count(struct ibp_route *route, unsigned opcode, uint64_t bytes, uint64_t messages)
{
    const uint32_t writer = find_writer();

    if (route->pair == IBP_NO_PAIR) {
        struct ibp_pair pair;

        describe_pair(route, &pair);
        route->pair = ibp_transfers_pair(&pair);
    }
    ibp_route_note_seen(route);
    if (!route->owner && writer != IBP_WRITER_SHARED)
        __atomic_store_n(&route->owner, &ibp_thread_mark, __ATOMIC_RELAXED);
    if (route->owner == &ibp_thread_mark && route->pair != IBP_NO_PAIR) {
        uint64_t *amount = ibp_transfers_amount(route->pair, opcode, writer);

        __atomic_store_n(&route->own[opcode], amount, __ATOMIC_RELAXED);
        ibp_amount_add(amount, bytes, messages);
    } else {
        uint64_t *amount = ibp_transfers_amount(route->pair, opcode, IBP_WRITER_SHARED);

        __atomic_store_n(&route->shared[opcode], amount, __ATOMIC_RELEASE);
        __atomic_fetch_add(&amount[0], bytes, __ATOMIC_RELAXED);
        __atomic_fetch_add(&amount[1], messages, __ATOMIC_RELAXED);
    }
}

void ibp_route_count_slowly(struct ibp_route *route, unsigned opcode, uint64_t bytes, uint64_t messages)
{
    uint64_t *shared = __atomic_load_n(&route->shared[opcode], __ATOMIC_ACQUIRE);

    if (!__atomic_load_n(&ibp_process_state->recorded, __ATOMIC_RELAXED) && !ibp_process_open()) return;
    if (shared && __atomic_load_n(&route->owner, __ATOMIC_RELAXED) != &ibp_thread_mark) {
        __atomic_fetch_add(&shared[0], bytes, __ATOMIC_RELAXED);
        __atomic_fetch_add(&shared[1], messages, __ATOMIC_RELAXED);
        return;
    }
    ibp_verbs_lock();
    find_and_count(route, opcode, bytes, messages);
    ibp_verbs_unlock();
}
