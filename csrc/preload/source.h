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

    /* Hooks in and proves itself. Returns 0, or -1 with the reason in `why` and nothing changed. */
    int (*attach)(char *why, size_t why_bytes);

    /* Takes every hook back. */
    void (*detach)(void);

    /* What it cannot see in this process, or did not: sentences, each with a newline behind it. */
    void (*describe_gaps)(char *notes, size_t bytes);

    /* The current call is one that takes an internal tag of its communicator: called before and after the library runs it. */
    void (*before_tag)(void);
    void (*after_tag)(bool succeeded);

    /* The application starts persistent requests: called before and after the library does. */
    void (*before_start)(size_t count, void **requests);
    void (*after_start)(size_t count, void **requests, void *const *before);

    /* The application frees a request. */
    void (*forget_request)(void *request);

    /* A call made a partitioned send, which starts as a persistent one does and whose parts go past every hook. */
    void (*remember_send)(void *request, ibp_handle communicator, int peer, uint64_t bytes, unsigned operation);

    /* A call made a persistent collective. */
    void (*remember_collective)(void *request, unsigned operation);

    /* The operation of a persistent collective, IBP_OPERATION_NONE for any other request. */
    unsigned (*collective_of)(void *request);
};

/* The one that is attached; NULL while nothing is recorded. */
extern const struct ibp_source_operations *ibp_source;

extern const struct ibp_source_operations ibp_source_openmpi;

#endif
