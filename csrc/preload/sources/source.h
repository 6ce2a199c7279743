/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A source: a place in an MPI library where bytes are seen on their way to a peer.
 *
 * A source attaches after MPI is initialised and verifies itself with a message to this process. When that fails it
 * detaches: a wrong guess may cost the recording, but never the program.
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

    /* The source does not see a message's send mode, so wrappers label the calls that send. */
    bool labels_sends;

    /* The source knows peers by network address, not by rank (counting/addresses.h). */
    bool knows_addresses;

    /* Hook objects that MPI will create, before MPI is initialised; may be NULL. */
    void (*prepare)(void);

    /* Install the hooks and verify them. Return 0, or -1 with the reason in `why` and nothing changed. */
    int (*attach)(char *why, size_t why_bytes);

    /* Remove all hooks. */
    void (*detach)(void);

    /* Return whether the source also sees messages between ranks of one host. */
    bool (*sees_host)(void);

    /* Append descriptions of traffic that the source cannot see in this process, or did not see: sentences, each
     * followed by a newline. */
    void (*describe_gaps)(char *notes, size_t bytes);

    /* Called before and after a call of the library that allocates an internal tag of its communicator. `error` is the
     * result of the call. */
    void (*before_tag)(void);
    void (*after_tag)(int error);

    /* Return whether a persistent collective allocates such a tag each time it is started, and not once when it is
     * created. NULL means that it does not. */
    bool (*starts_take_tags)(void);

    /* Start persistent requests of the application: from the first one on, all that send or receive messages and fit
     * one call. Set the result and return their number. If the number is 0, the first request is partitioned or a
     * collective. NULL where wrappers label the calls that send. */
    size_t (*start)(ibp_start_function *start, size_t count, void **requests, int *result);

    /* Called after a call has created a communicator, window or file from a communicator; may be NULL. */
    void (*made_object)(ibp_handle communicator);

    /* Called when the application frees a communicator; may be NULL. */
    void (*forget_communicator)(ibp_handle communicator);

    /* Called when the application frees a request; may be NULL. */
    void (*forget_request)(void *request);

    /* Called while ibp_source_unproved, before the application sends `count` items under a tag; may be NULL
     * otherwise. */
    void (*expect_message)(uint64_t count, ibp_handle datatype, int peer, int tag);
};

/* Replaces a source where none attaches: calls are recorded with their times, and without bytes. */
extern IBP_INTERNAL const struct ibp_source_operations ibp_no_source;

/* The attached source; NULL while nothing is recorded. */
extern const struct ibp_source_operations *ibp_source;

/* The message to this process did not verify the source. The first messages to others are therefore compared with the
 * calls that send them. */
extern IBP_INTERNAL bool ibp_source_unproved;

/* The reason why the messages of this rank are not seen; empty where they are seen. */
extern IBP_INTERNAL char ibp_source_why_not[1024];

/* Record the traffic that the source cannot see, or did not see. */
void ibp_source_note_gaps(void);

/* Reject the source, whose verification failed: detach it and discard its counters. */
void ibp_source_reject(const char *why);

#endif
