/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Requests of sampled collectives and messages, from the call that made them to the one that completes them. The table
 * has a fixed size. All of this requires the lock, but for the number of those that are started.
 */
#ifndef IBPROF_COUNTING_OPEN_REQUESTS_H
#define IBPROF_COUNTING_OPEN_REQUESTS_H

#include "platform/system.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_OPEN_REQUESTS_MAX 192

enum ibp_open_role { IBP_OPEN_COLLECTIVE = 1, IBP_OPEN_SEND, IBP_OPEN_RECEIVE };

/* The known part of an instance before it completes. */
struct ibp_instance_known {
    /* Name of the communicator; of a persistent collective, that of its request. 0 where it is not sampled. */
    uint64_t name, number;
    uint64_t bytes;
    uint64_t start_ns;
    uint32_t origin;
    /* Of a collective: the number of processes. Of a message: the world rank of the other end. */
    uint32_t size_or_peer;
    /* Of a collective: the number of this process, and the root. Of a message: the tag. */
    uint32_t member;
    int32_t root_or_tag;
    uint8_t stratum, keeps, stream_keeps;
};

struct ibp_open_request {
    /* 0 in a free place. */
    uintptr_t request;
    /* Of a message: what the call that made the request was passed. */
    intptr_t communicator;
    int source, tag;
    struct ibp_instance_known known;
    /* Of a persistent one: how often it was started, of a collective; and the envelope of a message, if it is known. */
    uint64_t starts;
    struct ibp_envelope *envelope;
    uint8_t role; /* enum ibp_open_role */
    bool is_persistent, is_started;
    /* A call is about to complete it. Among threads, MPI may then give its handle to another one. */
    bool is_completing;
    /* Distinguishes the entries that one handle has had. */
    uint32_t serial;
    /* A receive that waits for its number (counting/message_order.h): its place there, from 1; else 0. */
    unsigned order;
    uint16_t operation;
};

/* Number of those that are started: calls that complete requests look only while there are some. */
extern IBP_INTERNAL uint32_t ibp_open_requests;

/* The table; NULL before the first entry. */
#define IBP_OPEN_REQUEST_PLACES 256
extern IBP_INTERNAL struct ibp_open_request *ibp_open_request_places;

/* Return the place where the search for a request begins. */
static inline uint32_t ibp_open_request_home(uintptr_t request)
{
    return (uint32_t)((uint64_t)request * UINT64_C(0x9e3779b97f4a7c15) >> 40) % IBP_OPEN_REQUEST_PLACES;
}

/* Return the entry of a request; NULL where there is none. Valid until one is added or removed. */
struct ibp_open_request *ibp_open_request_find(uintptr_t request);

/* Return the envelope of the messages of a persistent request; NULL where it is not known. There must be a table. */
static inline struct ibp_envelope *ibp_open_request_envelope(uintptr_t request)
{
    const struct ibp_open_request *entry = &ibp_open_request_places[ibp_open_request_home(request)];

    if (IBP_UNLIKELY(entry->request != request)) entry = ibp_open_request_find(request);
    return entry ? entry->envelope : NULL;
}

/* Return whether there is a persistent one of an envelope. */
bool ibp_open_request_of(enum ibp_open_role role, intptr_t communicator, int source, int tag);

/* Add an entry, in place of any former one of the same request. Return NULL when the table is full. */
struct ibp_open_request *ibp_open_request_add(uintptr_t request);

/* Forget the envelopes of all entries. */
void ibp_open_requests_forget_envelopes(void);

void ibp_open_request_remove(struct ibp_open_request *entry);

/* Mark an entry as started or completed. */
void ibp_open_request_start(struct ibp_open_request *entry, bool is_started);

#endif
