/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Routes: the destinations of queue pairs and address handles. Hash tables map the address of a queue pair or address
 * handle to its route.
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

/* The provider's functions that the hooks call; NULL for wr_ functions that a queue pair lacks. Queue pairs with the
 * same functions share one struct, so that the struct stays in the processor's cache. */
struct ibp_verbs_provider {
    ibp_verbs_post_send *post_send;
    struct ibp_verbs_builders builders;
    void (*atomic_write)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t, const void *);
    const struct ibp_verbs_provider *next;
};

/* Return the shared struct with the same functions, created if needed; NULL if memory is exhausted. The verbs lock must
 * be held. */
const struct ibp_verbs_provider *ibp_verbs_provider_share(const struct ibp_verbs_provider *functions);

/* The route of a queue pair or address handle. The thread that posts first is the route's owner. Only the owner adds to
 * the records in `own`, so the additions need not be atomic. Other threads add to the records in `shared`. A post of
 * the owner accesses only the first cache line of this struct. */
struct ibp_route {
    const void *owner;
    /* The owner's records by opcode; NULL before the first post with the opcode. */
    uint64_t *own[IBP_OPCODES];
    const struct ibp_verbs_provider *provider;
    /* Unfinished requests of a thread: the thread then began to build requests on another queue pair (build.c). Usually
     * NULL. */
    struct ibp_verbs_build *parked;
    /* Index of the pair of ports (counting/transfers.h); IBP_NO_PAIR before the first post. */
    uint32_t pair;
    /* True if the queue pair sends datagrams. The address handle of each request then contains the destination. */
    bool datagram;
    /* True if the queue pair counts as unseen: it permits posts without verbs, and has no posts through verbs so
     * far. */
    bool direct;

    uint64_t *shared[IBP_OPCODES];
    struct ibp_verbs_context *context;
    /* True if `path` is valid. */
    bool connected;
    /* True if `alternate` is valid. */
    bool has_alternate;
    struct ibp_verbs_path path, alternate;
    struct ibp_route *next_free;
};

/* An entry of a hash table with open addressing. To change an entry, the verbs lock is needed; to read one, no lock. */
struct ibp_route_slot {
    /* NULL if the entry is free. */
    const void *address;
    /* NULL if the route was forgotten. */
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

/* Return the route of an object; NULL if the table has no route for its address. */
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

/* ibp_route_make: return the route of an object, created if needed; NULL if memory is exhausted. ibp_route_forget:
 * remove the route of an object. The verbs lock must be held. */
struct ibp_route *ibp_route_make(struct ibp_route_table **which, const void *address);
void ibp_route_forget(struct ibp_route_table **which, const void *address);

/* Set the path of all later requests; NULL if the path is unknown. The verbs lock must be held. */
void ibp_route_redirect(struct ibp_route *route, const struct ibp_verbs_path *path);

/* Return zeroed memory in whole cache lines, which is never freed; NULL if memory is exhausted. */
void *ibp_pool_take(size_t bytes);

/* The slow path of ibp_route_count: for the owner's first request with an opcode, and for requests of other threads. */
void ibp_route_count_slowly(struct ibp_route *route, unsigned opcode, uint64_t bytes, uint64_t messages);

/* The program has posted through verbs: stop counting the queue pair as unseen. */
void ibp_route_note_seen(struct ibp_route *route);

/* The address of this variable identifies this thread. */
extern IBP_INTERNAL IBP_THREAD_LOCAL char ibp_thread_mark;

static inline void ibp_amount_add(uint64_t *amount, uint64_t bytes, uint64_t messages)
{
    /* The stores are atomic, because other threads may read the amount. The addition is not atomic, because only this
     * thread changes the amount. */
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
