/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Persistent requests and matched messages, by address: what MPI_Start will send is known only when the request is
 * made.
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
    /* Of MPI_Mprobe: no request, but remembered in the same way. */
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

/* Remember a request, instead of any former one at its address. */
void ibp_request_remember(const struct ibp_request *request);

/* Return a request, valid until another one is remembered; NULL when the address is unknown. */
const struct ibp_request *ibp_request_find(void *address);

void ibp_request_forget(void *address);

/* The following are for wrappers of MPI calls, which do not hold the lock. */

/* Copy what is known of a request. Return whether anything is. */
bool ibp_request_copy(void *address, struct ibp_request *known);
void ibp_request_freed(void *address);

/* Remember a partitioned send. It is started like a persistent one, and no hook sees its parts. */
void ibp_request_keep_send(void *address, ibp_handle communicator, int peer, uint64_t bytes, unsigned operation);

/* Remember a request whose messages show their operation only through MPI_Start: of a persistent collective, and of
 * any send where calls are labelled. */
void ibp_request_keep_operation(void *address, unsigned operation);

/* Return the operation of such a request; IBP_OPERATION_NONE for any other one. */
unsigned ibp_request_operation(void *address);

#endif
