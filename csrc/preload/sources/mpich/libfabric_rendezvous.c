/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * An announcement may lack the size of the data. If the sender sends the data in one message, this message shows the
 * size. Otherwise the sender sends a header in one of two forms. A header of 8 bytes contains the size. Such a header
 * precedes data in several messages, or follows the sender's writes by RDMA. A longer header contains the size, and
 * keys of the memory that the receiver reads.
 *
 * A receiver also sends longer headers, with keys of the memory to which the sender writes. ibprof takes a longer
 * header as a sender's if the thread that sends it has last registered memory that peers may only read.
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

/* The upper half of an announcement's remote CQ data is the size of the announced data. The value is 0 if the size
 * exceeds 32 bits, or if the provider sends fewer than 8 bytes of remote CQ data. */
#define SIZE_SHIFT 32

/* The bit of a context that marks collectives. An announcement may have this bit; later messages of the rendezvous lack
 * the bit. */
#define COLLECTIVE_CONTEXT UINT32_C(1)

/* True after a receiver has read an unknown number of a message's bytes from this process's memory. */
static bool was_split;

/* Announced messages whose size a header has shown. Their bytes are already counted, so messages with their data must
 * not be counted again. If RDMA transfers the data, the entry remains until a newer entry replaces it. */
#define STREAMS 256
static struct {
    uint64_t bits;
    uint32_t peer;
} streams[STREAMS];
static unsigned stream_count;

/* Remove a pending announcement, and count `bytes` for its call. The lock must be held; this function releases it. */
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
                        "of some large messages, ibprof saw only the first part, because the receiver read the rest\n");
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

/* Return whether a message is a sender's header with the size of the announced data. */
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

/* Count a message with announced data, unless the data were counted from the announcement or a header. */
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

/* A message contains only the first part of the data: set its size to the size of the memory that this thread has just
 * registered. */
static void complete_huge(struct ibp_fi_tagged *message)
{
    const size_t whole = ibp_fi_registered_for_reads();

    if (whole >= message->bytes)
        message->bytes = whole;
    else
        was_split |= ibp_is_active();
}

void ibp_fi_count_protocol_message(struct ibp_fi_tagged message, uint32_t peer)
{
    const struct ibp_fi_protocol_bits *protocol = &ibp_fi_layout.protocol;
    const uint64_t meaning = message.bits & protocol->mask;
    struct ibp_mpich_envelope envelope = ibp_fi_envelope(message.bits);

    if (protocol->huge && meaning == protocol->huge) complete_huge(&message);
    if (protocol->part & message.bits) {
        if (message.injected)
            count_header(message, peer);
        else
            count_data(message, peer);
    } else if (!(protocol->reply & message.bits) && ibp_fi_announces() &&
               (meaning == protocol->announced || meaning == protocol->announced_packed)) {
        count_announcement(envelope, message, peer);
    } else {
        envelope.is_control = protocol->reply & message.bits || (!message.bytes && meaning != protocol->synchronous);
        ibp_mpich_count(envelope, peer, message.bytes);
    }
}
