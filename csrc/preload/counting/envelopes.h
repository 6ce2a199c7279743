/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages with the same sender, receiver, communicator and tag have the same envelope. MPI delivers the messages of an
 * envelope in order. So sender and receiver assign the same number to a message, and sample the same messages.
 *
 * The table of envelopes has a fixed size. When the table is full, the stream level rises (counting/samples.h): ibprof
 * keeps about half of the streams, and removes the envelopes of all other streams. A hash chooses the same streams at
 * sender and receiver.
 *
 * While messages of this process are rare (on average at most one in 5 us), each message is timed, and the messages
 * that took longest are recorded too.
 */
#ifndef IBPROF_COUNTING_ENVELOPES_H
#define IBPROF_COUNTING_ENVELOPES_H

#include "counting/repeats.h"
#include "libmpi/library.h"
#include "platform/system.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

struct ibp_envelope {
    /* The key that ibp_envelope_key computes from the arguments of a call; 0 if the entry is free. */
    uint64_t key;
    /* `next`: number of the next message to be sampled. `messages`: counts the messages before message `next`. */
    uint64_t next;
    struct ibp_messages_left messages;
    /* Number of messages of this envelope that ibp_envelopes_end has added to the recording's total. */
    uint64_t counted;
    /* Hash of communicator, sender, receiver and tag, equal in both processes; 0 for messages to and from
     * MPI_PROC_NULL. */
    uint64_t stream;
    ibp_handle communicator;
    /* With several threads in MPI: the thread that uses the envelope. */
    uint32_t thread;
    uint8_t side; /* enum ibp_side */
    /* The highest stream level (samples.h) that keeps any message of the envelope. */
    uint8_t stream_keeps;
    /* True to time the envelope's next message even if the hash does not choose this message. */
    bool is_timed;
} __attribute__((aligned(64)));

#define IBP_ENVELOPE_PLACES 1024

/* The table. Before ibp_envelopes_begin, the table is an array of free entries; ibprof never writes to this array. */
extern IBP_INTERNAL struct ibp_envelope *ibp_envelopes;

/* The value of `next` if no message is to be sampled. */
#define IBP_NEVER ((uint64_t)INT64_MAX)

/* Return the key of an envelope, from the arguments of a call. */
static inline uint64_t ibp_envelope_key(ibp_handle communicator, int peer, int tag, enum ibp_side side)
{
    const uint64_t whom = (uint64_t)(uint32_t)peer << 32 | (uint32_t)tag;
    const uint64_t key = (uint64_t)communicator * UINT64_C(0xd1342543de82ef95) ^ whom * UINT64_C(0x9e3779b97f4a7c15) ^
                         (uint64_t)side * UINT64_C(0x2545f4914f6cdd1d);

    return key | 1;
}

/* Return the envelope of the next message with these arguments. Return NULL if this message may be sampled, or if the
 * envelope is not at its hash position in the table. */
static inline struct ibp_envelope *ibp_envelope_unsampled(ibp_handle communicator, int peer, int tag,
                                                          enum ibp_side side)
{
    const uint64_t key = ibp_envelope_key(communicator, peer, tag, side);
    struct ibp_envelope *const envelope = &ibp_envelopes[key >> 54];

    if (IBP_UNLIKELY(envelope->key != key)) return NULL;
    if (IBP_UNLIKELY(!envelope->messages.left) && envelope->messages.granted)
        ibp_messages_take_back(&envelope->messages);
    return IBP_LIKELY(envelope->messages.left) ? envelope : NULL;
}

/* The envelope of all messages while no samples are taken. Messages are not numbered during this time. */
extern IBP_INTERNAL struct ibp_envelope ibp_envelope_of_none;

bool ibp_envelopes_begin(void);

struct ibp_numbered {
    /* 0 for a message without a number. */
    uint64_t stream;
    uint64_t communicator;
    uint64_t number;
    uint32_t peer;
    /* `is_sampled`: true if the message is timed, because the hash chooses it or because `is_timed` is true.
     * `is_timed`: true if the message is timed even if the hash does not choose the message. */
    bool is_sampled, is_timed;
    uint8_t stratum, keeps, stream_keeps;
    /* NULL if the message cannot be numbered. The pointer is valid until an envelope is removed. */
    struct ibp_envelope *envelope;
};

/* Assign a sequence number to a message, from the arguments of a call. `class`: 0 for a small message; the
 * class of a large message grows with the count argument of the call. Classes are sampled separately, so that rare large
 * messages have samples too. Sender and receiver may assign different classes to a message. Call ibp_communicator_learn
 * first (libmpi/communicators.h).
 * This function and all functions below require the lock. */
struct ibp_numbered ibp_envelope_number(ibp_handle communicator, int peer, int tag, enum ibp_side side, unsigned class);

/* As ibp_envelope_number for a small message, but the next message gets the same number. */
struct ibp_numbered ibp_envelope_peek(ibp_handle communicator, int peer, int tag, enum ibp_side side);

/* ibp_envelope_stop: stop sampling the messages of an envelope. ibp_envelopes_disorder: stop sampling the messages
 * received on a communicator; if `communicator` is 0, on all communicators. */
void ibp_envelope_stop(ibp_handle communicator, int peer, int tag, enum ibp_side side);
void ibp_envelopes_disorder(ibp_handle communicator);

/* Stop sampling all sent and received messages. */
void ibp_envelopes_stop(void);

void ibp_envelopes_forget(ibp_handle communicator);

/* Add all numbered messages to the totals in the recording. */
void ibp_envelopes_end(void);

#endif
