/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Persistent requests and matched messages, by address: what MPI_Start will send is known only when the request is
 * made.
 */
#ifndef IBPROF_COUNTING_REQUESTS_H
#define IBPROF_COUNTING_REQUESTS_H

#include "counting/ledger.h"
#include "libmpi/library.h"
#include "platform/system.h"

#include <stdbool.h>
#include <stdint.h>

struct ibp_call; /* counting/calls.h */
struct ibp_context; /* counting/context.h */

#define IBP_NO_ORIGIN UINT32_MAX

enum ibp_request_role {
    IBP_REQUEST_SEND = 1,
    IBP_REQUEST_RECEIVE,
    IBP_REQUEST_COLLECTIVE,
    /* Of MPI_Mprobe: no request, but remembered in the same way. */
    IBP_REQUEST_MESSAGE,
    /* A partitioned send. */
    IBP_REQUEST_PARTS
};

struct ibp_request {
    void *address;
    uint16_t operation;
    uint8_t role; /* enum ibp_request_role; 0 of one that was forgotten */
    uint8_t kind; /* enum ibp_kind of what it sends */
    uint32_t peer;
    uint64_t bytes;
    /* Of a receive or a message. */
    ibp_handle communicator;
    /* Of a send: that of the call that made it. Of a receive: that of its operation if it is on MPI_COMM_WORLD. */
    struct ibp_context *context;
    /* Of a send: the counter that it used last, and its size's bin, of this origin; IBP_NO_ORIGIN where there is none. */
    uint64_t *amount, *bin;
    uint32_t origin;
    /* The source hooked its own start function. */
    bool has_hook;
    /* Each start asks for `bytes` of a partner, `peer` (counting/ledger.h). */
    bool is_demand;
    /* Of a collective or a partitioned send: the number of the call that made it (counting/calls.h). */
    uint16_t call;
} __attribute__((aligned(64)));

/* By hash of the address: a power of two places. */
struct ibp_requests {
    struct ibp_request *place;
    /* Mask of the offset of a place in bytes. */
    uint64_t mask;
};
extern IBP_INTERNAL struct ibp_requests ibp_requests;

_Static_assert(sizeof(struct ibp_request) == 64, "offsets of places can be masked");

/* Return the offset in bytes of the place that an address hashes to. */
static inline uint64_t ibp_request_place(void *address, uint64_t mask)
{
    return ((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & mask;
}

/* Remember a request, instead of any former one at its address. */
void ibp_request_remember(const struct ibp_request *request);

/* Return a request, valid until another one is remembered; NULL when the address is unknown. */
struct ibp_request *ibp_request_find(void *address);

/* Return the place that an address hashes to: nearly always the request's own, unless it is unknown. */
static inline struct ibp_request *ibp_request_at_hash(void *address)
{
    return (struct ibp_request *)((char *)ibp_requests.place + ibp_request_place(address, ibp_requests.mask));
}

void ibp_request_forget(void *address);

/* A communicator is about to be freed; collectives on it may be started still. */
void ibp_requests_forget_communicator(ibp_handle communicator);

/* Call a function with each request that is remembered. */
void ibp_requests_visit(void (*visit)(const struct ibp_request *request));

/* The source sees each start of all requests of the application that were made so far, so that wrappers of MPI_Start
 * need not look at them. */
extern IBP_INTERNAL bool ibp_requests_show_starts;

/* The following are for wrappers of MPI calls, which do not hold the lock. */

/* Copy what is known of a request. Return whether anything is. */
bool ibp_request_copy(void *address, struct ibp_request *known);
void ibp_request_freed(void *address);

/* Remember a partitioned send. It is started like a persistent one, and no hook sees its parts. */
void ibp_request_keep_send(void *address, ibp_handle communicator, int peer, uint64_t bytes,
                           const struct ibp_call *call);

/* Count such a send, which is about to be started. */
void ibp_request_count_parts(void *address);

/* Remember a request whose messages show their operation only through MPI_Start: of a persistent collective on a
 * communicator, and of any send where calls are labelled; there 0. */
void ibp_request_keep_call(void *address, const struct ibp_call *call, ibp_handle communicator,
                           struct ibp_demanded demanded, bool is_demand);

/* Enter the start of a request in the ledger. */
void ibp_request_demand(void *address);

/* Return the communicator of a persistent collective; 0 for any other request, and once the communicator was freed. */
ibp_handle ibp_request_communicator(void *address);

/* Return the call that made such a request; that of IBP_OPERATION_NONE for any other one. */
struct ibp_call *ibp_request_call(void *address);

#endif
