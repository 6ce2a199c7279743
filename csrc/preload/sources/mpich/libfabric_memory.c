/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/libfabric_memory.h"
#include "sources/mpich/libfabric_layout.h"
#include "sources/mpich/libfabric_tables.h"
#include "sources/mpich/messages.h"

static inline ssize_t saw(ssize_t result, struct ibp_fi_endpoint *object, enum ibp_direction direction, size_t bytes,
                          uint64_t peer)
{
    if (!result && !ibp_fi_announces())
        ibp_mpich_count_moved(direction, ibp_fi_peer_of(OWNED(object->memory)->owner, peer), bytes);
    return result;
}
#define SAW_READ(result, bytes, peer) saw(result, object, IBP_DIRECTION_FETCHED, bytes, peer)
#define SAW_WRITE(result, bytes, peer) saw(result, object, IBP_DIRECTION_SENT, bytes, peer)

static ssize_t hook_read(struct ibp_fi_endpoint *object, void *buffer, size_t bytes, void *descriptor, uint64_t peer,
                         uint64_t place, uint64_t key, void *context)
{
    return SAW_READ(ORIGINAL(object->memory)->read(object, buffer, bytes, descriptor, peer, place, key, context), bytes,
                    peer);
}

static ssize_t hook_read_parts(struct ibp_fi_endpoint *object, const struct iovec *parts, void **descriptors,
                               size_t count, uint64_t peer, uint64_t place, uint64_t key, void *context)
{
    return SAW_READ(ORIGINAL(object->memory)->read_parts(object, parts, descriptors, count, peer, place, key, context),
                    ibp_fi_bytes_of(parts, count), peer);
}

static ssize_t hook_read_message(struct ibp_fi_endpoint *object, const struct ibp_fi_message *message, uint64_t flags)
{
    return SAW_READ(ORIGINAL(object->memory)->read_message(object, message, flags),
                    ibp_fi_bytes_of(message->parts, message->count), message->peer);
}

static ssize_t hook_write(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                          uint64_t peer, uint64_t place, uint64_t key, void *context)
{
    return SAW_WRITE(ORIGINAL(object->memory)->write(object, buffer, bytes, descriptor, peer, place, key, context),
                     bytes, peer);
}

static ssize_t hook_write_parts(struct ibp_fi_endpoint *object, const struct iovec *parts, void **descriptors,
                                size_t count, uint64_t peer, uint64_t place, uint64_t key, void *context)
{
    return SAW_WRITE(
        ORIGINAL(object->memory)->write_parts(object, parts, descriptors, count, peer, place, key, context),
        ibp_fi_bytes_of(parts, count), peer);
}

static ssize_t hook_write_message(struct ibp_fi_endpoint *object, const struct ibp_fi_message *message, uint64_t flags)
{
    return SAW_WRITE(ORIGINAL(object->memory)->write_message(object, message, flags),
                     ibp_fi_bytes_of(message->parts, message->count), message->peer);
}

static ssize_t hook_inject(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t peer,
                           uint64_t place, uint64_t key)
{
    return SAW_WRITE(ORIGINAL(object->memory)->inject(object, buffer, bytes, peer, place, key), bytes, peer);
}

static ssize_t hook_write_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                               uint64_t data, uint64_t peer, uint64_t place, uint64_t key, void *context)
{
    return SAW_WRITE(
        ORIGINAL(object->memory)->write_data(object, buffer, bytes, descriptor, data, peer, place, key, context), bytes,
        peer);
}

static ssize_t hook_inject_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t data,
                                uint64_t peer, uint64_t place, uint64_t key)
{
    return SAW_WRITE(ORIGINAL(object->memory)->inject_data(object, buffer, bytes, data, peer, place, key), bytes, peer);
}

void ibp_fi_hook_memory(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner)
{
    if (!object->memory || !ibp_fi_copy_table(&object->memory, owner)) return;
    PUT(object->memory, read, hook_read);
    PUT(object->memory, read_parts, hook_read_parts);
    PUT(object->memory, read_message, hook_read_message);
    PUT(object->memory, write, hook_write);
    PUT(object->memory, write_parts, hook_write_parts);
    PUT(object->memory, write_message, hook_write_message);
    PUT(object->memory, inject, hook_inject);
    PUT(object->memory, write_data, hook_write_data);
    PUT(object->memory, inject_data, hook_inject_data);
}

/* -- the domain ----------------------------------------------------------------------------------------------------- */

/* FI_REMOTE_READ and FI_REMOTE_WRITE. */
#define BY_READS (UINT64_C(1) << 12)
#define BY_WRITES (UINT64_C(1) << 13)

static IBP_THREAD_LOCAL size_t bytes_to_read;

size_t ibp_fi_registered_for_reads(void)
{
    return bytes_to_read;
}

static int hook_register(struct ibp_fi_domain *domain, const void *buffer, size_t bytes, uint64_t access,
                         uint64_t offset, uint64_t key, uint64_t flags, void *region, void *context)
{
    bytes_to_read = access & BY_READS && !(access & BY_WRITES) ? bytes : 0;
    return ORIGINAL(domain->registrations)->one(domain, buffer, bytes, access, offset, key, flags, region, context);
}

#define QUEUE_WORK 11 /* FI_QUEUE_WORK */
static bool work_was_queued;

bool ibp_fi_work_was_queued(void)
{
    return work_was_queued;
}

static int hook_control(struct ibp_fi_object *object, int command, void *argument)
{
    work_was_queued |= command == QUEUE_WORK;
    return ORIGINAL(object->table)->control(object, command, argument);
}

void ibp_fi_hook_domain(struct ibp_fi_domain *domain)
{
    if (domain->registrations && ibp_fi_copy_table(&domain->registrations, NULL))
        PUT(domain->registrations, one, hook_register);
    if (domain->object.table && ibp_fi_copy_table(&domain->object.table, NULL))
        PUT(domain->object.table, control, hook_control);
}
