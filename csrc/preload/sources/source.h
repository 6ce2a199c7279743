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

/* MPI_Startall, or MPI_Start for one request. */
typedef int ibp_start_function(int count, void **requests);

struct ibp_source_operations {
    enum ibp_source source;
    const char *name;

    /* Its layer does not show a message's send mode: wrappers label the calls that send. */
    bool labels_sends;

    /* It knows peers by network address, not by rank (counting/addresses.h). */
    bool knows_addresses;

    /* Hook objects that MPI is about to make, before it is initialised; may be NULL. */
    void (*prepare)(void);

    /* Install the hooks and verify them. Return 0, or -1 with the reason in `why` and nothing changed. */
    int (*attach)(char *why, size_t why_bytes);

    /* Remove all hooks. */
    void (*detach)(void);

    /* Return whether it sees messages between ranks of one host too. */
    bool (*sees_host)(void);

    /* Append what the source cannot see in this process, or did not see: sentences, each followed by a newline. */
    void (*describe_gaps)(char *notes, size_t bytes);

    /* Called before and after the library runs a call that takes an internal tag of its communicator; with what it
     * returned. */
    void (*before_tag)(void);
    void (*after_tag)(int error);

    /* Return whether a persistent collective takes such a tag each time it is started, instead of once when it is made;
     * may be NULL: it does not. */
    bool (*starts_take_tags)(void);

    /* Start persistent requests of the application: as many as send and receive messages, from the first one on, and
     * fit one call. Set the result and return their number. A request for which it is 0 is partitioned or a
     * collective. NULL where wrappers label the calls that send. */
    size_t (*start)(ibp_start_function *start, size_t count, void **requests, int *result);

    /* Called after a call has made a communicator, window or file of a communicator; may be NULL. */
    void (*made_object)(ibp_handle communicator);

    /* Called when the application frees a communicator; may be NULL. */
    void (*forget_communicator)(ibp_handle communicator);

    /* Called when the application frees a request; may be NULL. */
    void (*forget_request)(void *request);

    /* Called while ibp_source_unproved, before the application sends `count` items under a tag; may be NULL
     * otherwise. */
    void (*expect_message)(uint64_t count, ibp_handle datatype, int peer, int tag);
};

/* In place of a source where none attaches: calls are recorded with their time, and no bytes. */
extern IBP_INTERNAL const struct ibp_source_operations ibp_no_source;

/* The attached source; NULL while nothing is recorded. */
extern const struct ibp_source_operations *ibp_source;

/* The message to this process did not verify the source: the first messages to others are compared with the calls
 * that send them. */
extern IBP_INTERNAL bool ibp_source_unproved;

/* Why the messages of this rank are not seen; empty where they are. */
extern IBP_INTERNAL char ibp_source_why_not[1024];

/* Record what the source cannot see, or did not see. */
void ibp_source_note_gaps(void);

/* Reject the source, whose verification failed: detach it and discard its counters. */
void ibp_source_reject(const char *why);

#endif
