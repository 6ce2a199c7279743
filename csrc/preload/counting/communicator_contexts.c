/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/communicator_contexts.h"
#include "counting/ledger.h"
#include "platform/memory.h"

#include "ibprof_recording.h"

#include <string.h>

_Static_assert((sizeof(struct ibp_cached_context) & (sizeof(struct ibp_cached_context) - 1)) == 0,
               "offsets are masked");

struct ibp_cached_context ibp_cached_contexts[IBP_CONTEXTS_CACHED];

/* -- unused contexts ----------------------------------------------------------------------------------------------- */

/* Unused contexts. Contexts are never freed, because pending receives and the list of used `ibp_recent` elements may
 * point to them. */
static struct ibp_context *retired;

static void free_world_ranks(struct ibp_context *context)
{
    ibp_memory_unmap(context->world_rank, (size_t)context->size * sizeof *context->world_rank);
    context->world_rank = NULL;
}

static struct ibp_context *take_retired(void)
{
    for (struct ibp_context **place = &retired; *place; place = &(*place)->next) {
        struct ibp_context *context = *place;

        if (context->pending) continue;
        *place = context->next;
        free_world_ranks(context);
        return context;
    }
    return NULL;
}

static void map_some(void)
{
    enum { AT_ONCE = 32 };
    struct ibp_context *contexts = ibp_memory_map(AT_ONCE * sizeof *contexts);

    for (unsigned i = 0; contexts && i < AT_ONCE; i++) {
        contexts[i].next = retired;
        retired = &contexts[i];
    }
}

/* -- contexts of communicators ------------------------------------------------------------------------------------- */

/* Clear an `ibp_recent` before its first message. `next` and `is_listed` do not change, because the element may be in
 * the list of used elements. */
static void clear(struct ibp_recent *recent)
{
    recent->peer = IBP_NO_PEER;
    recent->operation = IBP_OPERATION_NONE;
    recent->origin = 0;
}

/* Return a cleared context for a communicator of `size` processes; NULL if memory is exhausted. */
static struct ibp_context *take(int size, uint32_t *world_rank)
{
    struct ibp_context *context = take_retired();

    if (!context) {
        map_some();
        context = take_retired();
    }
    if (!context) return NULL;
    context->next = NULL;
    context->world_rank = world_rank;
    context->size = size;
    clear(&context->send);
    clear(&context->isend);
    clear(&context->receive);
    return context;
}

void ibp_context_make(struct ibp_communicator *communicator)
{
    if (communicator->context || !communicator->size) return;
    communicator->context = take(communicator->size, communicator->world_rank);
}

/* Add another context for the same communicator. The new context gets a copy of the world ranks, because ibprof frees a
 * context's array before the context is reused. */
static struct ibp_context *add_another(struct ibp_context *context)
{
    const size_t bytes = (size_t)context->size * sizeof *context->world_rank;
    uint32_t *world_rank = context->world_rank ? ibp_memory_map(bytes) : NULL;
    struct ibp_context *another;

    if (context->world_rank && !world_rank) return NULL;
    if (world_rank) memcpy(world_rank, context->world_rank, bytes);
    another = take(context->size, world_rank);
    if (!another) {
        ibp_memory_unmap(world_rank, bytes);
        return NULL;
    }
    another->next = context->next;
    context->next = another;
    return another;
}

struct ibp_context *ibp_context_find(ibp_handle handle)
{
    const struct ibp_communicator *communicator = ibp_communicator_known(handle);

    if (!communicator || !communicator->context) return NULL;
    *ibp_cached_context_of(handle) = (struct ibp_cached_context){handle, communicator->context};
    return communicator->context;
}

struct ibp_context *ibp_context_find_for_receives(ibp_handle communicator, unsigned operation)
{
    struct ibp_context *first = ibp_context_find(communicator), *context = first;

    while (context && context->receive.operation != operation && context->pending) context = context->next;
    if (first && !context) context = add_another(first);
    if (!context || context->receive.operation == operation) return context;
    context->receive.operation = (uint16_t)operation;
    context->receive.peer = IBP_NO_PEER;
    return context;
}

/* Add the contexts of a communicator to the unused contexts. */
static void retire(struct ibp_communicator *communicator)
{
    for (struct ibp_context *context = communicator->context, *next; context; context = next) {
        next = context->next;
        context->next = retired;
        retired = context;
    }
    communicator->context = NULL;
    communicator->world_rank = NULL;
}

void ibp_context_forget(ibp_handle handle)
{
    struct ibp_cached_context *cached = ibp_cached_context_of(handle);
    struct ibp_communicator *communicator;

    ibp_ledger_forget(handle);
    ibp_contexts_move_back();
    if (cached->communicator == handle) *cached = (struct ibp_cached_context){0};
    if (!ibp_communicator_known(handle)) return ibp_communicator_forget(handle);
    communicator = ibp_communicator_enter(handle);
    if (communicator->context) retire(communicator);
    ibp_communicator_forget(handle);
}
