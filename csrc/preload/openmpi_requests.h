/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Received bytes in Open MPI: a request says how many came, and from whom, only when it completes.
 *
 * Open MPI calls a function of a request's when it completes, if one is set (`req_complete_cb`). Where that field and the
 * status lie is found out with a message to this process itself and tried with a second one; where that does not come out,
 * received bytes are not recorded, and the recording says so.
 */
#ifndef IBPROF_OPENMPI_REQUESTS_H
#define IBPROF_OPENMPI_REQUESTS_H

#include "system.h"

#include "counters.h"
#include "libmpi.h"

#include <stdbool.h>
#include <stddef.h>

/* MPI_Status of Open MPI 4 and 5. */
struct ibp_openmpi_status {
    int source;
    int tag;
    int error;
    int cancelled;
    size_t bytes;
};

/* Finds the layout of requests; sends two messages to this process, each of IBP_PROBE_BYTES bytes under IBP_PROBE_TAG.
 * Returns whether received bytes can be seen. */
#define IBP_PROBE_BYTES 7
#define IBP_PROBE_TAG 23063
#define IBP_PROBE_MESSAGES 2
bool ibp_openmpi_requests_probe(void);

/* Offsets within ompi_request_t, once known. */
struct ibp_openmpi_request_layout {
    size_t status;
    size_t complete;
    size_t callback; /* followed by its datum */
    size_t release;  /* the function that frees it; 0 unless several threads are in MPI and the trial came out */
};
extern IBP_INTERNAL struct ibp_openmpi_request_layout ibp_openmpi_request;

/* The datum of a callback: what is received counts under this operation, from a rank of this communicator. It is kept there
 * because not every component of Open MPI writes the communicator into the request. Addresses are at most 48 bits wide. */
#define IBP_WATCH_KEY_BITS 14
#define IBP_WATCH(communicator, operation)                                                                             \
    ((uint64_t)(communicator) << IBP_WATCH_KEY_BITS | IBP_KEY_OF(operation, IBP_KIND_USER, IBP_DIRECTION_RECEIVED))

/* Open MPI calls this when a watched request completes; it wants 0 back. */
int ibp_openmpi_request_complete(void *request);

/* Counts what a request receives from the communicator that it was posted on: now if it is complete, else when it is. */
void ibp_openmpi_request_watch(void *request, uint64_t watch);

/* The same for a persistent request that is about to be started: nobody else looks at it yet. */
void ibp_openmpi_request_watch_next(void *request, uint64_t watch);

/* The same for a thread that has MPI to itself. */
static inline void ibp_openmpi_request_watch_alone(void *request, uint64_t watch)
{
    void **callback = (void **)((char *)request + ibp_openmpi_request.callback);
    void *volatile *complete = (void *volatile *)((char *)request + ibp_openmpi_request.complete);

    if (IBP_UNLIKELY(*callback || *complete)) {
        ibp_openmpi_request_watch(request, watch);
        return;
    }
    callback[1] = (void *)(uintptr_t)watch;
    callback[0] = (void *)ibp_openmpi_request_complete;
}

/* Requests that were watched and whose end was not seen: they are still open, or were never waited for. Counted under
 * MPI_THREAD_MULTIPLE alone. */
uint64_t ibp_openmpi_requests_missed(void);

/* Counts what a blocking receive received. */
void ibp_openmpi_count_received(ibp_handle communicator, const struct ibp_openmpi_status *status, unsigned operation);

#endif
