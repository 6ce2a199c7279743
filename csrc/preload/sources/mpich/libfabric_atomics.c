/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/libfabric_atomics.h"
#include "sources/mpich/libfabric_layout.h"
#include "sources/mpich/libfabric_tables.h"
#include "sources/mpich/messages.h"

/* FI_ATOMIC_READ, the only operation that sends no data. */
#define ATOMIC_READ 10

/* Return the size of an item in bytes. `type` is an enum fi_datatype. */
static size_t item_bytes(int type)
{
    static const unsigned char bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16, 32, 16, 16};

    return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

static size_t items_of(const struct ibp_fi_items *parts, size_t count)
{
    size_t items = 0;

    for (size_t i = 0; i < count; i++) items += parts[i].count;
    return items;
}

/* If an operation succeeded, count the bytes that it sends and fetches. `sent`, `fetched`: numbers of items. A
 * compare-and-swap sends two values for each item. */
static ssize_t saw(ssize_t result, struct ibp_fi_endpoint *object, uint64_t peer, int type, size_t sent, size_t fetched)
{
    uint32_t number;

    if (result || ibp_fi_announces()) return result;
    number = ibp_fi_peer_of(OWNED(object->atomics)->owner, peer);
    if (sent) ibp_mpich_count_moved(IBP_DIRECTION_SENT, number, sent * item_bytes(type));
    if (fetched) ibp_mpich_count_moved(IBP_DIRECTION_FETCHED, number, fetched * item_bytes(type));
    return result;
}

static ssize_t hook_write(struct ibp_fi_endpoint *object, const void *items, size_t count, void *descriptor,
                          uint64_t peer, uint64_t place, uint64_t key, int type, int operation, void *context)
{
    return saw(
        ORIGINAL(object->atomics)->write(object, items, count, descriptor, peer, place, key, type, operation, context),
        object, peer, type, count, 0);
}

static ssize_t hook_write_parts(struct ibp_fi_endpoint *object, const struct ibp_fi_items *parts, void **descriptors,
                                size_t count, uint64_t peer, uint64_t place, uint64_t key, int type, int operation,
                                void *context)
{
    return saw(ORIGINAL(object->atomics)
                   ->write_parts(object, parts, descriptors, count, peer, place, key, type, operation, context),
               object, peer, type, items_of(parts, count), 0);
}

static ssize_t hook_write_message(struct ibp_fi_endpoint *object, const struct ibp_fi_atomic_message *message,
                                  uint64_t flags)
{
    return saw(ORIGINAL(object->atomics)->write_message(object, message, flags), object, message->peer, message->type,
               items_of(message->parts, message->count), 0);
}

static ssize_t hook_inject(struct ibp_fi_endpoint *object, const void *items, size_t count, uint64_t peer,
                           uint64_t place, uint64_t key, int type, int operation)
{
    return saw(ORIGINAL(object->atomics)->inject(object, items, count, peer, place, key, type, operation), object, peer,
               type, count, 0);
}

static ssize_t hook_fetch(struct ibp_fi_endpoint *object, const void *items, size_t count, void *descriptor,
                          void *fetched, void *fetched_descriptor, uint64_t peer, uint64_t place, uint64_t key,
                          int type, int operation, void *context)
{
    return saw(ORIGINAL(object->atomics)
                   ->fetch(object, items, count, descriptor, fetched, fetched_descriptor, peer, place, key, type,
                           operation, context),
               object, peer, type, operation == ATOMIC_READ ? 0 : count, count);
}

static ssize_t hook_fetch_parts(struct ibp_fi_endpoint *object, const struct ibp_fi_items *parts, void **descriptors,
                                size_t count, struct ibp_fi_items *fetched, void **fetched_descriptors,
                                size_t fetched_count, uint64_t peer, uint64_t place, uint64_t key, int type,
                                int operation, void *context)
{
    return saw(ORIGINAL(object->atomics)
                   ->fetch_parts(object, parts, descriptors, count, fetched, fetched_descriptors, fetched_count, peer,
                                 place, key, type, operation, context),
               object, peer, type, operation == ATOMIC_READ ? 0 : items_of(parts, count),
               items_of(fetched, fetched_count));
}

static ssize_t hook_fetch_message(struct ibp_fi_endpoint *object, const struct ibp_fi_atomic_message *message,
                                  struct ibp_fi_items *fetched, void **fetched_descriptors, size_t fetched_count,
                                  uint64_t flags)
{
    return saw(
        ORIGINAL(object->atomics)->fetch_message(object, message, fetched, fetched_descriptors, fetched_count, flags),
        object, message->peer, message->type,
        message->operation == ATOMIC_READ ? 0 : items_of(message->parts, message->count),
        items_of(fetched, fetched_count));
}

static ssize_t hook_compare(struct ibp_fi_endpoint *object, const void *items, size_t count, void *descriptor,
                            const void *compared, void *compared_descriptor, void *fetched, void *fetched_descriptor,
                            uint64_t peer, uint64_t place, uint64_t key, int type, int operation, void *context)
{
    return saw(ORIGINAL(object->atomics)
                   ->compare(object, items, count, descriptor, compared, compared_descriptor, fetched,
                             fetched_descriptor, peer, place, key, type, operation, context),
               object, peer, type, 2 * count, count);
}

static ssize_t hook_compare_parts(struct ibp_fi_endpoint *object, const struct ibp_fi_items *parts, void **descriptors,
                                  size_t count, const struct ibp_fi_items *compared, void **compared_descriptors,
                                  size_t compared_count, struct ibp_fi_items *fetched, void **fetched_descriptors,
                                  size_t fetched_count, uint64_t peer, uint64_t place, uint64_t key, int type,
                                  int operation, void *context)
{
    return saw(ORIGINAL(object->atomics)
                   ->compare_parts(object, parts, descriptors, count, compared, compared_descriptors, compared_count,
                                   fetched, fetched_descriptors, fetched_count, peer, place, key, type, operation,
                                   context),
               object, peer, type, items_of(parts, count) + items_of(compared, compared_count),
               items_of(fetched, fetched_count));
}

static ssize_t hook_compare_message(struct ibp_fi_endpoint *object, const struct ibp_fi_atomic_message *message,
                                    const struct ibp_fi_items *compared, void **compared_descriptors,
                                    size_t compared_count, struct ibp_fi_items *fetched, void **fetched_descriptors,
                                    size_t fetched_count, uint64_t flags)
{
    return saw(ORIGINAL(object->atomics)
                   ->compare_message(object, message, compared, compared_descriptors, compared_count, fetched,
                                     fetched_descriptors, fetched_count, flags),
               object, message->peer, message->type,
               items_of(message->parts, message->count) + items_of(compared, compared_count),
               items_of(fetched, fetched_count));
}

void ibp_fi_hook_atomics(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner)
{
    if (!object->atomics || !ibp_fi_copy_table(&object->atomics, owner)) return;
    PUT(object->atomics, write, hook_write);
    PUT(object->atomics, write_parts, hook_write_parts);
    PUT(object->atomics, write_message, hook_write_message);
    PUT(object->atomics, inject, hook_inject);
    PUT(object->atomics, fetch, hook_fetch);
    PUT(object->atomics, fetch_parts, hook_fetch_parts);
    PUT(object->atomics, fetch_message, hook_fetch_message);
    PUT(object->atomics, compare, hook_compare);
    PUT(object->atomics, compare_parts, hook_compare_parts);
    PUT(object->atomics, compare_message, hook_compare_message);
}
