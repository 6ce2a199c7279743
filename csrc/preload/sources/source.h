/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A source: a place in an MPI library where bytes can be seen on their way to a peer.
 *
 * A source attaches after MPI is initialised, proves with a message to itself that it sees what it ought to, and takes itself
 * back when it does not: a guess that is wrong must cost the recording, never the program.
 */
#ifndef IBPROF_SOURCES_SOURCE_H
#define IBPROF_SOURCES_SOURCE_H

#include "libmpi/library.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stddef.h>

struct ibp_source_operations {
    enum ibp_source source;
    const char *name;

    /* Its layer does not tell in which mode a message is sent: the calls that send are labelled for it. */
    bool labels_sends;

    /* It knows peers by their address on the network, not by rank (addresses.h). */
    bool knows_addresses;

    /* Hooks into what is about to be made, before MPI is initialised; NULL where there is no need. */
    void (*prepare)(void);

    /* Hooks in and proves itself. Returns 0, or -1 with the reason in `why` and nothing changed. */
    int (*attach)(char *why, size_t why_bytes);

    /* Takes every hook back. */
    void (*detach)(void);

    /* What it cannot see in this process, or did not: sentences, each with a newline behind it. */
    void (*describe_gaps)(char *notes, size_t bytes);

    /* The current call is one that takes an internal tag of its communicator: called before and after the library runs it. */
    void (*before_tag)(void);
    void (*after_tag)(bool succeeded);

    /* The application starts persistent requests: called before and after the library does; the latter may be NULL. */
    void (*before_start)(size_t count, void **requests);
    void (*after_start)(size_t count, void **requests, void *const *before);

    /* The application frees a communicator; may be NULL. */
    void (*forget_communicator)(ibp_handle communicator);

    /* The application is about to send so many items under a tag; called while ibp_source_unproved, else may be NULL. */
    void (*expect_message)(uint64_t count, ibp_handle datatype, int peer, int tag);
};

/* The one that is attached; NULL while nothing is recorded. */
extern const struct ibp_source_operations *ibp_source;

/* A message to itself was not enough: the first ones to others are held against the calls that send them. */
extern IBP_INTERNAL bool ibp_source_unproved;

/* Why the messages of this rank are not seen; empty where they are. */
extern IBP_INTERNAL char ibp_source_why_not[1024];

/* Enters in the recording what the source cannot see, or did not. */
void ibp_source_note_gaps(void);

/* The source was wrong: what it counted is taken back, and it sees no more. */
void ibp_source_reject(const char *why);

#endif
