/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What persistent requests (and matched messages) stand for, by their address: what MPI_Start will send is only said when
 * they are made.
 */
#ifndef IBPROF_COUNTING_REQUESTS_H
#define IBPROF_COUNTING_REQUESTS_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stdint.h>

enum ibp_request_role {
    IBP_REQUEST_SEND = 1,
    IBP_REQUEST_RECEIVE,
    IBP_REQUEST_COLLECTIVE,
    /* Of MPI_Mprobe: not a request, but remembered alike. */
    IBP_REQUEST_MESSAGE
};

struct ibp_request {
    void *address;
    uint16_t operation;
    uint8_t role; /* enum ibp_request_role */
    uint8_t kind; /* enum ibp_kind of what it sends */
    uint32_t peer;
    uint64_t bytes;
    /* Of a receive or a message. */
    ibp_handle communicator;
};

/* Remembers one; whatever had the address before is gone. */
void ibp_request_remember(const struct ibp_request *request);

/* NULL when the address is not known. Valid until the next one is remembered. */
const struct ibp_request *ibp_request_find(void *address);

void ibp_request_forget(void *address);

/* The same for calls of MPI's, which do not hold the lock of counters. */

/* A copy of what is known. Returns whether anything is. */
bool ibp_request_copy(void *address, struct ibp_request *known);
void ibp_request_freed(void *address);

/* A call made a partitioned send, which starts as a persistent one does and whose parts go past every hook. */
void ibp_request_keep_send(void *address, ibp_handle communicator, int peer, uint64_t bytes, unsigned operation);

/* A call made a request whose messages show only by MPI_Start what they belong to: a persistent collective's, and any that sends
 * where calls are labelled. */
void ibp_request_keep_operation(void *address, unsigned operation);

/* The operation of such a request, IBP_OPERATION_NONE for any other one. */
unsigned ibp_request_operation(void *address);

#endif
