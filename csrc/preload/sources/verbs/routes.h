/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Where what is posted goes: a route for each queue pair, and for each address handle, by its address.
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

/* Functions of the provider that ours stand before; those of the wr_ kind are NULL where a queue pair has none. Queue pairs that
 * have the same ones share this, so that it stays in the cache. */
struct ibp_verbs_provider {
    ibp_verbs_post_send *post_send;
    struct ibp_verbs_builders builders;
    void (*atomic_write)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t, const void *);
    const struct ibp_verbs_provider *next;
};

/* The one shared copy of such functions; NULL when there is no memory. Wants the lock of verbs held. */
const struct ibp_verbs_provider *ibp_verbs_provider_share(const struct ibp_verbs_provider *functions);

/* The first line of cache is what a post touches. The thread that posts first owns a route: it adds to records that no other
 * thread adds to, so needs no atomic addition. Others use shared records. */
struct ibp_route {
    const void *owner;
    /* The owner's; NULL before its first one. */
    uint64_t *own[IBP_OPCODES];
    const struct ibp_verbs_provider *provider;
    /* See build.c; NULL as a rule. */
    struct ibp_verbs_build *parked;
    /* IBP_NO_PAIR before the first post. */
    uint32_t pair;
    /* The address handle of each request says where it goes. */
    bool datagram;
    /* Made for posting past verbs, and not seen to post by it. */
    bool direct;

    uint64_t *shared[IBP_OPCODES];
    struct ibp_verbs_context *context;
    /* The path holds. */
    bool connected;
    /* That path holds. */
    bool has_alternate;
    struct ibp_verbs_path path, alternate;
    struct ibp_route *next_free;
};

/* An open hash table that is read without a lock and changed with it. */
struct ibp_route_slot {
    /* NULL: free. */
    const void *address;
    /* NULL: was there. */
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

/* NULL when the address has no route. */
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

/* These want the lock of verbs held. Making gives the present route of an address, if it has one, or a new one; NULL when
 * there is no memory. */
struct ibp_route *ibp_route_make(struct ibp_route_table **which, const void *address);
void ibp_route_forget(struct ibp_route_table **which, const void *address);

/* What is posted from now on goes by another path, or by none. */
void ibp_route_redirect(struct ibp_route *route, const struct ibp_verbs_path *path);

/* Private memory for good, zeroed, in lines of cache; NULL when there is none. */
void *ibp_pool_take(size_t bytes);

/* Adds to the counters of a route what the quick way could not: the first of its kind, or from another thread. */
void ibp_route_count_slowly(struct ibp_route *route, unsigned opcode, uint64_t bytes, uint64_t messages);

/* A queue pair that was made for posting past verbs is posted to by them after all. */
void ibp_route_note_seen(struct ibp_route *route);

/* Has an address of its own in each thread. */
extern IBP_INTERNAL IBP_THREAD_LOCAL char ibp_thread_mark;

static inline void ibp_amount_add(uint64_t *amount, uint64_t bytes, uint64_t messages)
{
    /* One thread writes, others may read: no word is ever half written. */
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
