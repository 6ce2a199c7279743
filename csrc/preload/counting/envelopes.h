/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Envelopes of messages: sender, receiver, communicator and tag. MPI delivers the messages of an envelope in order, so
 * both sides give them the same numbers and sample the same messages.
 *
 * The table has a fixed size. When it is full, the level of streams rises (counting/samples.h): both sides keep the
 * same half of the messages, chosen by hashes, and the envelopes of these messages.
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
    /* Key of the call's arguments; 0 in a free place. */
    uint64_t key;
    /* The number of the next sampled message, and the number of messages before it. */
    uint64_t next;
    struct ibp_messages_left messages;
    /* Number of its messages that the recording counts. */
    uint64_t counted;
    /* Hash of the properties that sender and receiver know; 0 for MPI_PROC_NULL, which receives no message. */
    uint64_t stream;
    ibp_handle communicator;
    /* With several threads in MPI: the thread that uses the envelope. */
    uint32_t thread;
    uint8_t side; /* enum ibp_side */
    /* The highest level of streams that keeps one of its messages. */
    uint8_t stream_keeps;
} __attribute__((aligned(64)));

#define IBP_ENVELOPE_PLACES 1024

/* Before the first envelope, a single free place that stands for all places. */
extern IBP_INTERNAL struct ibp_envelope *ibp_envelopes;

/* A number that is never reached: nothing is sampled. */
#define IBP_NEVER ((uint64_t)INT64_MAX)

/* Return the key of an envelope, from the arguments of a call. */
static inline uint64_t ibp_envelope_key(ibp_handle communicator, int peer, int tag, enum ibp_side side)
{
    const uint64_t whom = (uint64_t)(uint32_t)peer << 32 | (uint32_t)tag;
    const uint64_t key = (uint64_t)communicator * UINT64_C(0xd1342543de82ef95) ^ whom * UINT64_C(0x9e3779b97f4a7c15) ^
                         (uint64_t)side * UINT64_C(0x2545f4914f6cdd1d);

    return key | 1;
}

/* Return the envelope of a message that is not sampled, if that needs no search; NULL for all others. */
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

/* The envelope of messages that are not numbered, while there are no samples. */
extern IBP_INTERNAL struct ibp_envelope ibp_envelope_of_none;

/* Create the table. Return false without memory. */
bool ibp_envelopes_begin(void);

/* The number of a message. */
struct ibp_numbered {
    /* 0 for a message without a number. */
    uint64_t stream;
    uint64_t communicator;
    uint64_t number;
    uint32_t peer;
    bool is_sampled;
    uint8_t stratum, keeps, stream_keeps;
    /* NULL for a message without a number. Valid until an envelope is forgotten. */
    struct ibp_envelope *envelope;
};

/* Number a message by the arguments of a call. Its class is 0 if it is small, otherwise that of its number of items:
 * rare large messages keep their samples among many small ones. The sender and the receiver of a message may see
 * different classes. ibp_communicator_learn must have been called (libmpi/communicators.h). This and the following
 * functions require the lock. */
struct ibp_numbered ibp_envelope_number(ibp_handle communicator, int peer, int tag, enum ibp_side side, unsigned class);

/* Return the number of the next message of an envelope. */
struct ibp_numbered ibp_envelope_peek(ibp_handle communicator, int peer, int tag, enum ibp_side side);

/* Stop sampling an envelope. Stop sampling all messages received on a communicator, or, with 0, on all
 * communicators. */
void ibp_envelope_stop(ibp_handle communicator, int peer, int tag, enum ibp_side side);
void ibp_envelopes_disorder(ibp_handle communicator);

/* Stop sampling all messages, including sent messages. */
void ibp_envelopes_stop(void);

/* Forget the envelopes of a communicator that is freed. */
void ibp_envelopes_forget(ibp_handle communicator);

/* Count all numbered messages. */
void ibp_envelopes_end(void);

#endif
