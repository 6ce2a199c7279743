/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Persistent requests, and messages that MPI_Mprobe matched, by address. At the creation of a persistent request,
 * ibprof stores the arguments, because MPI_Start does not receive the arguments.
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
    /* A message that MPI_Mprobe matched. */
    IBP_REQUEST_MESSAGE,
    /* A send of MPI_Psend_init. */
    IBP_REQUEST_PARTS
};

struct ibp_request {
    void *address;
    uint16_t operation;
    uint8_t role; /* enum ibp_request_role; 0 for a forgotten request */
    uint8_t kind; /* enum ibp_kind of the sent bytes */
    uint32_t peer;
    uint64_t bytes;
    /* The communicator of a receive or of a matched message. */
    ibp_handle communicator;
    /* For a send: the context of the call that created the request. For a receive on MPI_COMM_WORLD: the context of the
     * operation. */
    struct ibp_context *context;
    /* For a send: counter, size bin and origin of the last start. `origin` is IBP_NO_ORIGIN before the first start. */
    uint64_t *amount, *bin;
    uint32_t origin;
    /* True if the source has hooked MPI's function that starts this request. */
    bool has_hook;
    /* True if each start adds `bytes` to the demand of partner `peer` (counting/ledger.h). */
    bool is_demand;
    /* For a collective or a partitioned send: the number of the `ibp_call` that created the request
     * (counting/calls.h). */
    uint16_t call;
} __attribute__((aligned(64)));

/* Hash table of requests by address. The number of entries is a power of two. */
struct ibp_requests {
    struct ibp_request *place;
    /* `hash & mask` is the offset of an entry in bytes. */
    uint64_t mask;
};
extern IBP_INTERNAL struct ibp_requests ibp_requests;

_Static_assert(sizeof(struct ibp_request) == 64, "offsets of places can be masked");

/* Return the offset in bytes of the entry at an address's hash position. */
static inline uint64_t ibp_request_place(void *address, uint64_t mask)
{
    return ((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & mask;
}

/* Remember a request. A former request with the same address is replaced. */
void ibp_request_remember(const struct ibp_request *request);

/* Return the entry of a request; NULL for an unknown address. The pointer is valid until another request is
 * remembered. */
struct ibp_request *ibp_request_find(void *address);

/* Return the entry at the hash position of an address. The caller must check the address of the entry. */
static inline struct ibp_request *ibp_request_at_hash(void *address)
{
    return (struct ibp_request *)((char *)ibp_requests.place + ibp_request_place(address, ibp_requests.mask));
}

void ibp_request_forget(void *address);

/* Remove a communicator from all requests before the communicator is freed. Persistent collectives on the communicator
 * may still be started. */
void ibp_requests_forget_communicator(ibp_handle communicator);

void ibp_requests_visit(void (*visit)(const struct ibp_request *request));

/* True if the source sees every start of every request that the application has created so far. Wrappers of MPI_Start
 * then do not search the table of requests. */
extern IBP_INTERNAL bool ibp_requests_show_starts;

/* Wrappers of MPI calls use the following functions. The lock must be free. */

/* Copy the entry of a request. Return false if the table has no entry for the request. */
bool ibp_request_copy(void *address, struct ibp_request *known);
void ibp_request_freed(void *address);

/* Remember a partitioned send. All bytes count at the start of the send, because no hook sees the partitions. */
void ibp_request_keep_send(void *address, ibp_handle communicator, int peer, uint64_t bytes,
                           const struct ibp_call *call);

/* Count a partitioned send that is about to be started. */
void ibp_request_count_parts(void *address);

/* Remember which call created a request, so that messages of MPI_Start count for this call. `communicator`: the
 * communicator of a persistent collective; 0 for a persistent send. */
void ibp_request_keep_call(void *address, const struct ibp_call *call, ibp_handle communicator,
                           struct ibp_demanded demanded, bool is_demand);

/* Enter the start of a request in the ledger. */
void ibp_request_demand(void *address);

/* Return the communicator of a persistent collective. Return 0 for other requests, or if the communicator was freed. */
ibp_handle ibp_request_communicator(void *address);

/* Return the `ibp_call` that ibp_request_keep_call has stored for a request. Without a stored call, return
 * ibp_calls[operation of the request] if ibp_labels_sends is set, otherwise ibp_calls[IBP_OPERATION_NONE]. */
struct ibp_call *ibp_request_call(void *address);

#endif
