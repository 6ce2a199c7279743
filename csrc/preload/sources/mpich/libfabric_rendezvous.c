/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * If an announcement shows no size, the data show it when the sender sends them in one message. Otherwise the sender
 * sends the size in a header:
 *
 *     8 bytes: the size, before parts in several messages, or after writes
 *     more:    the size and keys of the memory from which the receiver is to read
 *
 * A receiver also sends a header of the latter form, for memory that the sender is to write. The two headers are
 * distinguished by the access for which the memory was registered.
 */
#include "platform/system.h"
#include "sources/mpich/libfabric_rendezvous.h"
#include "libmpi/lock.h"
#include "platform/text.h"
#include "recording/process_state.h"
#include "sources/mpich/libfabric_layout.h"
#include "sources/mpich/libfabric_memory.h"
#include "sources/mpich/libfabric_pending.h"
#include "sources/mpich/messages.h"

#include <string.h>

/* The upper half of an announcement's extra data is the size, if the provider carries 8 bytes and the size fits. */
#define SIZE_SHIFT 32

/* The data lack this bit of the announcement's context. */
#define COLLECTIVE_CONTEXT UINT32_C(1)

static bool was_split; /* a message of unknown size was sent, whose rest the receiver reads */

/* Messages in parts whose size is already counted, the newest at (count - 1) % STREAMS. A message whose data are
 * written has no parts and stays until it is replaced. */
#define STREAMS 256
static struct {
    uint64_t bits;
    uint32_t peer;
} streams[STREAMS];
static unsigned stream_count;

/* Count the data of a pending announcement. The lock must be held; it is released. */
static void settle_and_unlock(uint32_t peer, uint32_t context, uint64_t bytes)
{
    const unsigned call = ibp_fi_settle(peer, context);

    ibp_unlock();
    ibp_mpich_count_for(call, peer, bytes);
}

void ibp_fi_describe_rendezvous(char *notes, size_t bytes)
{
    if (was_split)
        ibp_text_append(notes, bytes,
                        "of some large messages, whose rest the receiver read, only the first part is seen\n");
}

static void count_announcement(struct ibp_mpich_envelope envelope, struct ibp_fi_tagged message, uint32_t peer)
{
    const uint64_t size = message.extra >> SIZE_SHIFT;
    struct ibp_fi_announcement announcement = {.peer = peer, .context = envelope.context & ~COLLECTIVE_CONTEXT};

    if (size) {
        ibp_mpich_count(envelope, peer, size);
    } else if (ibp_is_active()) {
        ibp_lock();
        announcement.call = (uint16_t)ibp_mpich_call_of(envelope);
        ibp_fi_pend(announcement);
        ibp_unlock();
    }
}

/* Return whether a header of a sender contains the size of a message. */
static bool has_size(struct ibp_fi_tagged message)
{
    const size_t size = sizeof(uint64_t);

    return message.bytes == size || (message.bytes > size && ibp_fi_registered_for_reads());
}

static void count_header(struct ibp_fi_tagged message, uint32_t peer)
{
    const uint32_t context = ibp_fi_envelope(message.bits).context;
    uint64_t size;

    ibp_mpich_count_own(peer, message.bytes);
    if (!has_size(message)) return;
    memcpy(&size, message.injected, sizeof size);
    ibp_lock();
    if (!ibp_fi_is_pending(peer, context)) {
        ibp_unlock();
        return;
    }
    streams[stream_count % STREAMS].bits = message.bits;
    streams[stream_count++ % STREAMS].peer = peer;
    settle_and_unlock(peer, context, size);
}

static bool is_of_stream(uint64_t bits, uint32_t peer)
{
    for (unsigned i = 0; i < STREAMS && i < stream_count; i++)
        if (streams[i].bits == bits && streams[i].peer == peer) return true;
    return false;
}

/* Count a message with data, unless its announcement was counted. */
static void count_data(struct ibp_fi_tagged message, uint32_t peer)
{
    const uint32_t context = ibp_fi_envelope(message.bits).context;

    ibp_lock();
    if (!ibp_fi_is_pending(peer, context) || is_of_stream(message.bits, peer)) {
        ibp_unlock();
        return;
    }
    settle_and_unlock(peer, context, message.bytes);
}

/* Replace the bytes of a first part by the bytes of the whole message, which the sender has just registered. */
static void complete_huge(struct ibp_fi_tagged *message)
{
    const size_t whole = ibp_fi_registered_for_reads();

    if (whole >= message->bytes)
        message->bytes = whole;
    else
        was_split |= ibp_is_active();
}

void ibp_fi_count_purposeful(struct ibp_fi_tagged message, uint32_t peer)
{
    const struct ibp_fi_purposes *purposes = &ibp_fi_layout.purposes;
    const uint64_t meaning = message.bits & purposes->mask;
    struct ibp_mpich_envelope envelope = ibp_fi_envelope(message.bits);

    if (purposes->huge && meaning == purposes->huge) complete_huge(&message);
    if (purposes->part & message.bits) {
        if (message.injected)
            count_header(message, peer);
        else
            count_data(message, peer);
    } else if (!(purposes->reply & message.bits) && ibp_fi_announces() &&
               (meaning == purposes->announced || meaning == purposes->announced_packed)) {
        count_announcement(envelope, message, peer);
    } else {
        envelope.is_control = purposes->reply & message.bits || (!message.bytes && meaning != purposes->synchronous);
        ibp_mpich_count(envelope, peer, message.bytes);
    }
}
