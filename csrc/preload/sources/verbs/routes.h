/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Routes: the destination of posted requests, by the address of the queue pair or address handle.
 */
#ifndef IBPROF_SOURCES_VERBS_ROUTES_H
#define IBPROF_SOURCES_VERBS_ROUTES_H

#include "counting/transfers.h"
#include "platform/system.h"
#include "recording/process_state.h"
#include "sources/verbs/abi.h"

#include <stdbool.h>
#include <stdint.h>

struct ibp_verbs_build;

/* The provider's functions behind the hooks. Functions of the wr_ kind are NULL where a queue pair has none. Queue
 * pairs with the same functions share this struct, so that it stays in the cache. */
struct ibp_verbs_provider {
    ibp_verbs_post_send *post_send;
    struct ibp_verbs_builders builders;
    void (*atomic_write)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t, const void *);
    const struct ibp_verbs_provider *next;
};

/* Return the shared copy of such functions; NULL when there is no memory. The lock of verbs must be held. */
const struct ibp_verbs_provider *ibp_verbs_provider_share(const struct ibp_verbs_provider *functions);

/* A post accesses only the first cache line. The thread that posts first owns a route. Only the owner adds to the
 * route's own records, so it needs no atomic addition. Other threads use shared records. */
struct ibp_route {
    const void *owner;
    /* The owner's records; NULL before its first post. */
    uint64_t *own[IBP_OPCODES];
    const struct ibp_verbs_provider *provider;
    /* See build.c; usually NULL. */
    struct ibp_verbs_build *parked;
    /* IBP_NO_PAIR before the first post. */
    uint32_t pair;
    /* Each request's address handle determines its destination. */
    bool datagram;
    /* The queue pair was created for posting outside of verbs and has not posted through verbs. */
    bool direct;

    uint64_t *shared[IBP_OPCODES];
    struct ibp_verbs_context *context;
    /* The path is valid. */
    bool connected;
    /* `alternate` is valid. */
    bool has_alternate;
    struct ibp_verbs_path path, alternate;
    struct ibp_route *next_free;
};

/* A hash table with open addressing, read without a lock and changed with it. */
struct ibp_route_slot {
    /* NULL in a free slot. */
    const void *address;
    /* NULL after the route was forgotten. */
    struct ibp_route *route;
};
struct ibp_route_table {
    uint64_t mask;
    uint64_t used;
    struct ibp_route_slot slots[];
};

extern IBP_INTERNAL struct ibp_route_table *ibp_queue_pairs, *ibp_address_handles;

static inline uint64_t ibp_route_place(const void *address)
{
    return ((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 40;
}

/* Return the route of an address; NULL when it has none. */
static inline struct ibp_route *ibp_route_find(struct ibp_route_table *const *which, const void *address)
{
    const struct ibp_route_table *table = __atomic_load_n(which, __ATOMIC_ACQUIRE);

    if (IBP_UNLIKELY(!table)) return NULL;
    for (uint64_t place = ibp_route_place(address);; place++) {
        const struct ibp_route_slot *slot = &table->slots[place & table->mask];
        const void *found = __atomic_load_n(&slot->address, __ATOMIC_ACQUIRE);

        if (IBP_LIKELY(found == address)) return __atomic_load_n(&slot->route, __ATOMIC_ACQUIRE);
        if (!found) return NULL;
    }
}

/* Create a route, or return the present route of an address; NULL without memory. Forget a route. The lock of verbs
 * must be held. */
struct ibp_route *ibp_route_make(struct ibp_route_table **which, const void *address);
void ibp_route_forget(struct ibp_route_table **which, const void *address);

/* Set the path of requests posted from now on; NULL for no path. The lock of verbs must be held. */
void ibp_route_redirect(struct ibp_route *route, const struct ibp_verbs_path *path);

/* Return private memory that is never freed, zeroed, in whole cache lines; NULL without memory. */
void *ibp_pool_take(size_t bytes);

/* Count requests that ibp_route_count cannot count: the first request of a kind, or a request of another thread. */
void ibp_route_count_slowly(struct ibp_route *route, unsigned opcode, uint64_t bytes, uint64_t messages);

/* Note that a queue pair posts through verbs, although it was created for posting outside of verbs. */
void ibp_route_note_seen(struct ibp_route *route);

/* Identifies a thread by its address. */
extern IBP_INTERNAL IBP_THREAD_LOCAL char ibp_thread_mark;

static inline void ibp_amount_add(uint64_t *amount, uint64_t bytes, uint64_t messages)
{
    /* One thread writes and others may read: no word is ever torn. */
    __atomic_store_n(&amount[0], __atomic_load_n(&amount[0], __ATOMIC_RELAXED) + bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&amount[1], __atomic_load_n(&amount[1], __ATOMIC_RELAXED) + messages, __ATOMIC_RELAXED);
}

static inline void ibp_route_count(struct ibp_route *route, unsigned opcode, uint64_t bytes, uint64_t messages)
{
    uint64_t *amount = __atomic_load_n(&route->own[opcode], __ATOMIC_RELAXED);

    if (IBP_LIKELY(__atomic_load_n(&route->owner, __ATOMIC_RELAXED) == &ibp_thread_mark && amount &&
                   __atomic_load_n(&ibp_process_state->recorded, __ATOMIC_RELAXED)))
        ibp_amount_add(amount, bytes, messages);
    else
        ibp_route_count_slowly(route, opcode, bytes, messages);
}

#endif
