/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Contexts of communicators other than MPI_COMM_WORLD. For messages on MPI_COMM_WORLD, the context is ibp_here. A
 * communicator gets a context when one of its messages is first classified as user data. All functions require the
 * lock.
 */
#ifndef IBPROF_COUNTING_COMMUNICATOR_CONTEXTS_H
#define IBPROF_COUNTING_COMMUNICATOR_CONTEXTS_H

#include "counting/context.h"
#include "libmpi/communicators.h"
#include "platform/system.h"

#include <stddef.h>

/* Cache of recently used contexts. The index is some bits of the communicator's handle. In Open MPI, the handle is an
 * address. */
#define IBP_CONTEXTS_CACHED 256
struct ibp_cached_context {
    ibp_handle communicator;
    struct ibp_context *context;
};
extern IBP_INTERNAL struct ibp_cached_context ibp_cached_contexts[IBP_CONTEXTS_CACHED];

static inline struct ibp_cached_context *ibp_cached_context_of(ibp_handle communicator)
{
    enum { MASK = (IBP_CONTEXTS_CACHED - 1) * sizeof(struct ibp_cached_context) };

    return (struct ibp_cached_context *)((char *)ibp_cached_contexts + ((uintptr_t)communicator & MASK));
}

/* Return the cached context of a communicator; NULL if none is cached. The handle must not be 0. */
static inline struct ibp_context *ibp_context_cached(ibp_handle communicator)
{
    const struct ibp_cached_context *cached = ibp_cached_context_of(communicator);

    if (IBP_UNLIKELY(cached->communicator != communicator)) return NULL;
    if (!cached->context) __builtin_unreachable(); /* so the compiler omits tests for NULL in callers */
    return cached->context;
}

/* Return the context of a communicator and cache the context; NULL if the communicator has no context. */
struct ibp_context *ibp_context_find(ibp_handle communicator);

/* Return the communicator's context for receives of an operation, created if needed. Return NULL if the communicator
 * has no context, or if memory is exhausted. The operation of a context with pending receives does not change, so
 * receives of another operation get another context. */
struct ibp_context *ibp_context_find_for_receives(ibp_handle communicator, unsigned operation);

/* Create the context of a communicator whose messages are user data. */
void ibp_context_make(struct ibp_communicator *communicator);

/* Forget a communicator or window that is freed, because MPI may reuse the handle. Pointers to its contexts remain
 * valid while receives are pending. */
void ibp_context_forget(ibp_handle communicator);

#endif
