/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Requests of sampled collectives and messages, from the creation to the completion of a request. The table has a fixed
 * size. All functions require the lock; only ibp_open_requests may be read without the lock.
 */
#ifndef IBPROF_COUNTING_OPEN_REQUESTS_H
#define IBPROF_COUNTING_OPEN_REQUESTS_H

#include "platform/system.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_OPEN_REQUESTS_MAX 192

enum ibp_open_role { IBP_OPEN_COLLECTIVE = 1, IBP_OPEN_SEND, IBP_OPEN_RECEIVE };

/* Data that are known before a sampled collective or message completes. */
struct ibp_instance_known {
    /* `name`: 0 if the call is not sampled; otherwise a hash, equal on all members, that identifies the communicator
     * (communicator_names.h) or persistent collective. `number`: number of the collective on the communicator, or of
     * the message in its envelope. */
    uint64_t name, number;
    uint64_t bytes;
    uint64_t start_ns;
    /* For a message: the lateness that ibp_message_post computes; 0 if unknown. */
    uint64_t late_ns;
    uint32_t origin;
    /* For a collective: the number of processes in the communicator. For a message: the world rank of the other
     * process. */
    uint32_t size_or_peer;
    /* For a collective: `member` is the index of this process in the communicator, and `root_or_tag` is the root. For a
     * message: `root_or_tag` is the tag. */
    uint32_t member;
    int32_t root_or_tag;
    uint8_t stratum, keeps, stream_keeps;
    /* True to time the message even if the hash does not choose the message (struct ibp_numbered). */
    bool is_timed;
};

struct ibp_open_request {
    /* 0 if the entry is free. */
    uintptr_t request;
    /* For a message: the arguments of the call that created the request. */
    intptr_t communicator;
    int source, tag;
    struct ibp_instance_known known;
    /* For a persistent collective: the number of starts. For a persistent message: the envelope; NULL if unknown. */
    uint64_t starts;
    struct ibp_envelope *envelope;
    uint8_t role; /* enum ibp_open_role */
    /* For a persistent message: the size class (ibp_envelope_number). */
    uint8_t class;
    bool is_persistent, is_started;
    /* True if a call is about to complete the request: MPI may then reuse the request's handle in another thread. */
    bool is_completing;
    uint16_t operation;
    /* Serial number of the entry, to distinguish successive requests with the same handle. */
    uint32_t serial;
    /* For a receive that cannot be numbered yet: its identifier, from 1, in the list of waiting receives
     * (counting/message_order.h); otherwise 0. */
    unsigned order;
};

/* Number of started requests in the table. While the number is 0, calls that complete requests need not search the
 * table. With several threads in MPI, a thread that does not hold the lock must read the number by an atomic load. The
 * memory order of the load does not matter: a program starts a request before another thread completes it. */
extern IBP_INTERNAL uint32_t ibp_open_requests;

/* The table; NULL before the first entry. */
#define IBP_OPEN_REQUEST_PLACES 256
extern IBP_INTERNAL struct ibp_open_request *ibp_open_request_places;

/* Return the index of a request's hash position in the table. */
static inline uint32_t ibp_open_request_home(uintptr_t request)
{
    return (uint32_t)((uint64_t)request * UINT64_C(0x9e3779b97f4a7c15) >> 40) % IBP_OPEN_REQUEST_PLACES;
}

/* Return the entry of a request; NULL if there is none. The pointer is valid until an entry is added or removed. */
struct ibp_open_request *ibp_open_request_find(uintptr_t request);

/* Return the envelope of a persistent request's messages; NULL if unknown. The table must exist. */
static inline struct ibp_envelope *ibp_open_request_envelope(uintptr_t request)
{
    const struct ibp_open_request *entry = &ibp_open_request_places[ibp_open_request_home(request)];

    if (IBP_UNLIKELY(entry->request != request)) entry = ibp_open_request_find(request);
    return entry ? entry->envelope : NULL;
}

/* Return whether a persistent request with this role and these arguments exists. */
bool ibp_open_request_of(enum ibp_open_role role, intptr_t communicator, int source, int tag);

/* Add an entry, which replaces a former entry of the same request. Return NULL if there is no space, or for request
 * 0. */
struct ibp_open_request *ibp_open_request_add(uintptr_t request);

void ibp_open_requests_forget_envelopes(void);

void ibp_open_request_remove(struct ibp_open_request *entry);

void ibp_open_request_start(struct ibp_open_request *entry, bool is_started);

#endif
