/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/libfabric_sends.h"
#include "sources/mpich/active_messages.h"
#include "sources/mpich/libfabric_atomics.h"
#include "sources/mpich/libfabric_layout.h"
#include "sources/mpich/libfabric_memory.h"
#include "sources/mpich/libfabric_rendezvous.h"
#include "sources/mpich/libfabric_tables.h"
#include "sources/mpich/messages.h"

/* -- tagged messages ------------------------------------------------------------------------------------------------- */

static inline ssize_t saw_tagged(ssize_t result, struct ibp_fi_endpoint *object, uint64_t peer,
                                 struct ibp_fi_tagged message)
{
    uint32_t number;

    if (result) return result;
    number = ibp_fi_peer_of(OWNED(object->tagged)->owner, peer);
    if (IBP_LIKELY(!(message.bits >> ibp_fi_layout.protocol_shift)))
        ibp_mpich_count(ibp_fi_envelope(message.bits), number, message.bytes);
    else
        ibp_fi_count_protocol_message(message, number);
    return 0;
}

static ssize_t hook_tagged_send(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                                uint64_t peer, uint64_t tag, void *context)
{
    return saw_tagged(ORIGINAL(object->tagged)->send(object, buffer, bytes, descriptor, peer, tag, context), object,
                      peer, (struct ibp_fi_tagged){.bits = tag, .bytes = bytes});
}

static ssize_t hook_tagged_send_parts(struct ibp_fi_endpoint *object, const struct iovec *parts, void **descriptors,
                                      size_t count, uint64_t peer, uint64_t tag, void *context)
{
    return saw_tagged(ORIGINAL(object->tagged)->send_parts(object, parts, descriptors, count, peer, tag, context),
                      object, peer, (struct ibp_fi_tagged){.bits = tag, .bytes = ibp_fi_bytes_of(parts, count)});
}

static ssize_t hook_tagged_send_message(struct ibp_fi_endpoint *object, const struct ibp_fi_tagged_message *message,
                                        uint64_t flags)
{
    const struct ibp_fi_tagged seen = {.bits = message->tag, .bytes = ibp_fi_bytes_of(message->parts, message->count)};

    return saw_tagged(ORIGINAL(object->tagged)->send_message(object, message, flags), object, message->peer, seen);
}

static ssize_t hook_tagged_inject(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t peer,
                                  uint64_t tag)
{
    return saw_tagged(ORIGINAL(object->tagged)->inject(object, buffer, bytes, peer, tag), object, peer,
                      (struct ibp_fi_tagged){.bits = tag, .injected = buffer, .bytes = bytes});
}

static ssize_t hook_tagged_send_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                                     uint64_t data, uint64_t peer, uint64_t tag, void *context)
{
    return saw_tagged(ORIGINAL(object->tagged)->send_data(object, buffer, bytes, descriptor, data, peer, tag, context),
                      object, peer, (struct ibp_fi_tagged){.bits = tag, .bytes = bytes, .extra = data});
}

static ssize_t hook_tagged_inject_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t data,
                                       uint64_t peer, uint64_t tag)
{
    return saw_tagged(ORIGINAL(object->tagged)->inject_data(object, buffer, bytes, data, peer, tag), object, peer,
                      (struct ibp_fi_tagged){.bits = tag, .injected = buffer, .bytes = bytes, .extra = data});
}

/* -- active messages ----------------------------------------------------------------------------------------------- */

static inline ssize_t saw_message(ssize_t result, struct ibp_fi_endpoint *object, const void *buffer, size_t bytes,
                                  uint64_t peer)
{
    if (!result) ibp_fi_count_active(buffer, bytes, ibp_fi_peer_of(OWNED(object->messages)->owner, peer));
    return result;
}

static ssize_t hook_send(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                         uint64_t peer, void *context)
{
    return saw_message(ORIGINAL(object->messages)->send(object, buffer, bytes, descriptor, peer, context), object,
                       buffer, bytes, peer);
}

static ssize_t hook_send_parts(struct ibp_fi_endpoint *object, const struct iovec *parts, void **descriptors,
                               size_t count, uint64_t peer, void *context)
{
    return saw_message(ORIGINAL(object->messages)->send_parts(object, parts, descriptors, count, peer, context), object,
                       NULL, ibp_fi_bytes_of(parts, count), peer);
}

static ssize_t hook_send_message(struct ibp_fi_endpoint *object, const struct ibp_fi_message *message, uint64_t flags)
{
    return saw_message(ORIGINAL(object->messages)->send_message(object, message, flags), object, NULL,
                       ibp_fi_bytes_of(message->parts, message->count), message->peer);
}

static ssize_t hook_inject(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t peer)
{
    return saw_message(ORIGINAL(object->messages)->inject(object, buffer, bytes, peer), object, buffer, bytes, peer);
}

static ssize_t hook_send_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                              uint64_t data, uint64_t peer, void *context)
{
    return saw_message(ORIGINAL(object->messages)->send_data(object, buffer, bytes, descriptor, data, peer, context),
                       object, buffer, bytes, peer);
}

static ssize_t hook_inject_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t data,
                                uint64_t peer)
{
    return saw_message(ORIGINAL(object->messages)->inject_data(object, buffer, bytes, data, peer), object, buffer,
                       bytes, peer);
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
    ibp_fi_hook_memory(object, owner);
    ibp_fi_hook_atomics(object, owner);
}
