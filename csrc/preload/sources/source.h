/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A source: code of ibprof that counts messages and their bytes, by hooks in an MPI library or in a library that MPI
 * calls.
 *
 * A source attaches after MPI is initialised. To verify its hooks, the source sends a message to this process. The
 * source detaches if the hooks do not show this message correctly (see also ibp_source_unproved). So a wrong assumption
 * about a library may prevent the recording, but never harms the program.
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

    /* True if the source cannot see which call sent a message (MPI_Send, MPI_Ssend, ...). The wrappers of sending calls
     * must then set the current call. */
    bool labels_sends;

    /* True if the source knows peers by network address, not by rank (counting/addresses.h). */
    bool knows_addresses;

    /* Before MPI is initialised: install hooks for objects that MPI will create. May be NULL. */
    void (*prepare)(void);

    /* Install the hooks and verify the source. Return 0. If the verification fails, remove the hooks, write the reason
     * to `why` and return -1. */
    int (*attach)(char *why, size_t why_bytes);

    void (*detach)(void);

    /* Return whether the source also sees messages between ranks of one host. */
    bool (*sees_host)(void);

    /* Append sentences about traffic that the source does not see in this process. Each sentence ends with a
     * newline. */
    void (*describe_gaps)(char *notes, size_t bytes);

    /* before_tag, after_tag: called before and after an MPI call, if MPI allocates an internal tag of the communicator
     * for the call. `error`: the result of the MPI call. */
    void (*before_tag)(void);
    void (*after_tag)(int error);

    /* Return whether MPI allocates an internal tag at each start of a persistent collective. Other MPIs allocate one
     * tag when the persistent collective is created. The pointer may be NULL if no MPI of the source allocates tags at
     * starts. */
    bool (*starts_take_tags)(void);

    /* Call `start` once for one or more requests at the beginning of an array of persistent requests. Set `result` to
     * the result of `start`, and return the number of started requests. Return 0 if the first request is a partitioned
     * message or a collective. The pointer is NULL if `labels_sends` is set. */
    size_t (*start)(ibp_start_function *start, size_t count, void **requests, int *result);

    /* Called after a call has created a communicator, window or file from a communicator; may be NULL. */
    void (*made_object)(ibp_handle communicator);

    /* Called when the application frees a communicator; may be NULL. */
    void (*forget_communicator)(ibp_handle communicator);

    /* Called when the application frees a request; may be NULL. */
    void (*forget_request)(void *request);

    /* Called while ibp_source_unproved is true, before the application sends `count` items with a tag. The pointer may
     * be NULL if the source never sets ibp_source_unproved. */
    void (*expect_message)(uint64_t count, ibp_handle datatype, int peer, int tag);
};

/* The source that ibprof uses if no other source attaches: calls and times are recorded, but no bytes. */
extern IBP_INTERNAL const struct ibp_source_operations ibp_no_source;

/* The attached source; NULL while nothing is recorded. */
extern const struct ibp_source_operations *ibp_source;

/* True while the source is not verified, because the test message of this process to itself bypassed the source.
 * Therefore ibprof compares the first messages to other processes with the arguments of sending calls. */
extern IBP_INTERNAL bool ibp_source_unproved;

/* Why ibprof does not see the messages of this rank; empty if ibprof sees the messages. */
extern IBP_INTERNAL char ibp_source_why_not[1024];

/* In the record of this process, store notes about traffic that the source does not see. */
void ibp_source_note_gaps(void);

/* After a failed verification: detach the source, and discard its counters. */
void ibp_source_reject(const char *why);

#endif
