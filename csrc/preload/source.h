/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A source: a place in an MPI library where bytes can be seen on their way to a peer.
 *
 * A source attaches after MPI is initialised, proves with a message to itself that it sees what it ought to, and takes itself
 * back when it does not: a guess that is wrong must cost the recording, never the program.
 */
#ifndef IBPROF_SOURCE_H
#define IBPROF_SOURCE_H

#include "libmpi.h"

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

/* Says what IBPROF_SOURCE names that is none, and what there is; empty when it is well. */
void ibp_sources_describe_unknown(char *unknown, size_t bytes);

/* Hooks into what MPI is about to make. */
void ibp_sources_prepare(void);

/* Attaches one of the sources that this MPI can have, or the one that IBPROF_SOURCE names. NULL, with the reason in `why` and
 * all taken back, when there is none. */
const struct ibp_source_operations *ibp_sources_choose(char *why, size_t why_bytes);

extern const struct ibp_source_operations ibp_source_openmpi, ibp_source_ucx, ibp_source_libfabric;

#endif
