/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/libfabric_sends.h"
#include "libmpi/library.h"
#include "platform/log.h"
#include "sources/mpich/libfabric_tables.h"
#include "sources/mpich/messages.h"

static size_t bytes_of(const struct iovec *parts, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) bytes += parts[i].iov_len;
    return bytes;
}

/* Match bits hold, from the lowest up: the tag, the context, the sender's rank unless the provider carries it as
 * data, and the purpose of the message. The largest tag that a program may use shows which layout applies. */
static const struct layout {
    unsigned tag_bits, context_bits, purpose_shift;
    /* The purpose of MPI_Ssend's data; other messages without data are answers. */
    uint64_t synchronous;
} layouts[] = {
    {31, 20, 51, UINT64_C(1) << 54}, /* MPICH 4.3.2 and 5.0.2 */
    {20, 20, 60, UINT64_C(1) << 61}, /* Intel MPI 2021.18, whose provider carries no data with a message */
};
static const struct layout *layout = layouts;

void ibp_fi_find_layout(void)
{
    const unsigned largest_tag = ibp_mpi_largest_tag();

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (largest_tag && !(largest_tag >> layouts[i].tag_bits)) layout = &layouts[i];
    ibp_log(3, "the largest tag is %u: %u bits of match bits", largest_tag, layout->tag_bits);
}

static struct ibp_mpich_envelope envelope_of(uint64_t bits, size_t bytes)
{
    return (struct ibp_mpich_envelope){
        .context = (uint32_t)(bits >> layout->tag_bits) & ((UINT32_C(1) << layout->context_bits) - 1),
        .tag = (uint32_t)bits & ((UINT32_C(1) << layout->tag_bits) - 1),
        .is_control = !bytes && bits >> layout->purpose_shift && !(bits & layout->synchronous),
    };
}

static inline ssize_t saw_tagged(ssize_t result, struct ibp_fi_endpoint *object, size_t bytes, uint64_t peer,
                                 uint64_t tag)
{
    if (!result) {
        ibp_mpich_count(envelope_of(tag, bytes), ibp_fi_peer_of(OWNED(object->tagged)->owner, peer), bytes);
    }
    return result;
}

static ssize_t hook_tagged_send(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                                uint64_t peer, uint64_t tag, void *context)
{
    return saw_tagged(ORIGINAL(object->tagged)->send(object, buffer, bytes, descriptor, peer, tag, context), object,
                      bytes, peer, tag);
}

static ssize_t hook_tagged_send_parts(struct ibp_fi_endpoint *object, const struct iovec *parts, void **descriptors,
                                      size_t count, uint64_t peer, uint64_t tag, void *context)
{
    return saw_tagged(ORIGINAL(object->tagged)->send_parts(object, parts, descriptors, count, peer, tag, context),
                      object, bytes_of(parts, count), peer, tag);
}

static ssize_t hook_tagged_send_message(struct ibp_fi_endpoint *object, const struct ibp_fi_tagged_message *message,
                                        uint64_t flags)
{
    return saw_tagged(ORIGINAL(object->tagged)->send_message(object, message, flags), object,
                      bytes_of(message->parts, message->count), message->peer, message->tag);
}

static ssize_t hook_tagged_inject(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t peer,
                                  uint64_t tag)
{
    return saw_tagged(ORIGINAL(object->tagged)->inject(object, buffer, bytes, peer, tag), object, bytes, peer, tag);
}

static ssize_t hook_tagged_send_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                                     uint64_t data, uint64_t peer, uint64_t tag, void *context)
{
    return saw_tagged(ORIGINAL(object->tagged)->send_data(object, buffer, bytes, descriptor, data, peer, tag, context),
                      object, bytes, peer, tag);
}

static ssize_t hook_tagged_inject_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t data,
                                       uint64_t peer, uint64_t tag)
{
    return saw_tagged(ORIGINAL(object->tagged)->inject_data(object, buffer, bytes, data, peer, tag), object, bytes,
                      peer, tag);
}

/* Active messages of MPICH. */
static inline ssize_t saw_message(ssize_t result, struct ibp_fi_endpoint *object, size_t bytes, uint64_t peer)
{
    if (!result) ibp_mpich_count_active_message(ibp_fi_peer_of(OWNED(object->messages)->owner, peer), bytes);
    return result;
}

static ssize_t hook_send(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                         uint64_t peer, void *context)
{
    return saw_message(ORIGINAL(object->messages)->send(object, buffer, bytes, descriptor, peer, context), object,
                       bytes, peer);
}

static ssize_t hook_send_parts(struct ibp_fi_endpoint *object, const struct iovec *parts, void **descriptors,
                               size_t count, uint64_t peer, void *context)
{
    return saw_message(ORIGINAL(object->messages)->send_parts(object, parts, descriptors, count, peer, context), object,
                       bytes_of(parts, count), peer);
}

static ssize_t hook_send_message(struct ibp_fi_endpoint *object, const struct ibp_fi_message *message, uint64_t flags)
{
    return saw_message(ORIGINAL(object->messages)->send_message(object, message, flags), object,
                       bytes_of(message->parts, message->count), message->peer);
}

static ssize_t hook_inject(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t peer)
{
    return saw_message(ORIGINAL(object->messages)->inject(object, buffer, bytes, peer), object, bytes, peer);
}

static ssize_t hook_send_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                              uint64_t data, uint64_t peer, void *context)
{
    return saw_message(ORIGINAL(object->messages)->send_data(object, buffer, bytes, descriptor, data, peer, context),
                       object, bytes, peer);
}

static ssize_t hook_inject_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t data,
                                uint64_t peer)
{
    return saw_message(ORIGINAL(object->messages)->inject_data(object, buffer, bytes, data, peer), object, bytes, peer);
}

/* Reads: MPI_Get, and the receiver's side of very large messages. */
static inline ssize_t saw_read(ssize_t result, struct ibp_fi_endpoint *object, size_t bytes, uint64_t peer)
{
    if (!result) ibp_mpich_count_read(ibp_fi_peer_of(OWNED(object->memory)->owner, peer), bytes);
    return result;
}

static ssize_t hook_read(struct ibp_fi_endpoint *object, void *buffer, size_t bytes, void *descriptor, uint64_t peer,
                         uint64_t place, uint64_t key, void *context)
{
    return saw_read(ORIGINAL(object->memory)->read(object, buffer, bytes, descriptor, peer, place, key, context),
                    object, bytes, peer);
}

static ssize_t hook_read_parts(struct ibp_fi_endpoint *object, const struct iovec *parts, void **descriptors,
                               size_t count, uint64_t peer, uint64_t place, uint64_t key, void *context)
{
    return saw_read(ORIGINAL(object->memory)->read_parts(object, parts, descriptors, count, peer, place, key, context),
                    object, bytes_of(parts, count), peer);
}

static ssize_t hook_read_message(struct ibp_fi_endpoint *object, const struct ibp_fi_message *message, uint64_t flags)
{
    return saw_read(ORIGINAL(object->memory)->read_message(object, message, flags), object,
                    bytes_of(message->parts, message->count), message->peer);
}

/* -- hooking in ---------------------------------------------------------------------------------------------------- */

void ibp_fi_hook_sends(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner)
{
    if (object->tagged && ibp_fi_copy_table(&object->tagged, owner)) {
        PUT(object->tagged, send, hook_tagged_send);
        PUT(object->tagged, send_parts, hook_tagged_send_parts);
        PUT(object->tagged, send_message, hook_tagged_send_message);
        PUT(object->tagged, inject, hook_tagged_inject);
        PUT(object->tagged, send_data, hook_tagged_send_data);
        PUT(object->tagged, inject_data, hook_tagged_inject_data);
    }
    if (object->messages && ibp_fi_copy_table(&object->messages, owner)) {
        PUT(object->messages, send, hook_send);
        PUT(object->messages, send_parts, hook_send_parts);
        PUT(object->messages, send_message, hook_send_message);
        PUT(object->messages, inject, hook_inject);
        PUT(object->messages, send_data, hook_send_data);
        PUT(object->messages, inject_data, hook_inject_data);
    }
    if (object->memory && ibp_fi_copy_table(&object->memory, owner)) {
        PUT(object->memory, read, hook_read);
        PUT(object->memory, read_parts, hook_read_parts);
        PUT(object->memory, read_message, hook_read_message);
    }
}
