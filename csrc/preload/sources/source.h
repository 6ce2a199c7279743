/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A source: a layer in an MPI library or below it, where ibprof sees the messages to each peer and their bytes.
 *
 * A source attaches after MPI is initialised. To verify itself, it sends a message to this process. If the source does
 * not see exactly this message, it detaches. So a wrong assumption about a library may prevent the recording, but never
 * harms the program.
 */
#ifndef IBPROF_SOURCES_SOURCE_H
#define IBPROF_SOURCES_SOURCE_H

#include "libmpi/library.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stddef.h>

/* The type of MPI_Startall, or of MPI_Start for one request. */
typedef int ibp_start_function(int count, void **requests);

struct ibp_source_operations {
    enum ibp_source source;
    const char *name;

    /* The source cannot distinguish calls that send (MPI_Send, MPI_Ssend, ...), so their wrappers must set the current
     * call. */
    bool labels_sends;

    /* The source knows peers by network address, not by rank (counting/addresses.h). */
    bool knows_addresses;

    /* Before MPI is initialised: install hooks for objects that MPI will create. May be NULL. */
    void (*prepare)(void);

    /* Install the hooks and verify the source. If that fails, remove the hooks, write the reason to `why` and return
     * -1. Otherwise return 0. */
    int (*attach)(char *why, size_t why_bytes);

    /* Remove all hooks. */
    void (*detach)(void);

    /* Return whether the source also sees messages between ranks of one host. */
    bool (*sees_host)(void);

    /* Append sentences on traffic that the source does not see in this process. Each ends with a newline. */
    void (*describe_gaps)(char *notes, size_t bytes);

    /* Called before and after an MPI call for which MPI allocates an internal tag of the communicator. `error`: the
     * result of the call. */
    void (*before_tag)(void);
    void (*after_tag)(int error);

    /* Return whether MPI allocates an internal tag at each start of a persistent collective. Otherwise, MPI allocates
     * one tag when the persistent collective is created. NULL in a source of such an MPI. */
    bool (*starts_take_tags)(void);

    /* Start persistent requests of the application by one call of `start`: the first request and the requests after it,
     * up to the first request that does not send or receive a message. Set `result`, and return the number of started
     * requests. This number is 0 if the first request is a partitioned message or a collective. The pointer is NULL if
     * `labels_sends` is set. */
    size_t (*start)(ibp_start_function *start, size_t count, void **requests, int *result);

    /* Called after a call has created a communicator, window or file from a communicator; may be NULL. */
    void (*made_object)(ibp_handle communicator);

    /* Called when the application frees a communicator; may be NULL. */
    void (*forget_communicator)(ibp_handle communicator);

    /* Called when the application frees a request; may be NULL. */
    void (*forget_request)(void *request);

    /* Called while ibp_source_unproved, before the application sends `count` items with a tag. May be NULL in a source
     * that does not set ibp_source_unproved. */
    void (*expect_message)(uint64_t count, ibp_handle datatype, int peer, int tag);
};

/* Used if no source attaches: calls and their times are recorded, but no bytes. */
extern IBP_INTERNAL const struct ibp_source_operations ibp_no_source;

/* The attached source; NULL while nothing is recorded. */
extern const struct ibp_source_operations *ibp_source;

/* The source is not yet verified, because the message to this process bypassed it. Therefore the first messages to
 * other processes are compared with the calls that send them. */
extern IBP_INTERNAL bool ibp_source_unproved;

/* The reason why ibprof does not see the messages of this rank; empty if ibprof sees them. */
extern IBP_INTERNAL char ibp_source_why_not[1024];

/* Record notes on the traffic that the source does not see. */
void ibp_source_note_gaps(void);

/* Reject the source, whose verification failed: detach it and discard its counters. */
void ibp_source_reject(const char *why);

#endif
