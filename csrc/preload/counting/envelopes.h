/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Envelopes. Messages with the same sender, receiver, communicator and tag have the same envelope. MPI delivers them in
 * order, so the sender and the receiver number them alike and sample the same messages.
 *
 * The table has a fixed size. When it is full, the level of streams rises (counting/samples.h): sender and receiver
 * keep the same half of the streams, chosen by a hash, and forget the other envelopes.
 *
 * While messages of this process are rare (on average at most one in 5 us), each message is timed, because timing then
 * takes only a small part of the run time. The longest messages are then kept too.
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
    /* Key of the call's arguments (ibp_envelope_key); 0 if the entry is free. */
    uint64_t key;
    /* `next`: the number of the next sampled message. `messages`: how many messages remain before it. */
    uint64_t next;
    struct ibp_messages_left messages;
    /* How many of the envelope's messages were added to the total in the recording. */
    uint64_t counted;
    /* Hash of properties that sender and receiver know, equal on both sides; 0 for MPI_PROC_NULL. */
    uint64_t stream;
    ibp_handle communicator;
    /* With several threads in MPI: the thread that uses the envelope. */
    uint32_t thread;
    uint8_t side; /* enum ibp_side */
    /* The highest level of streams at which a message of the envelope is kept. */
    uint8_t stream_keeps;
    /* Each message is timed at present. */
    bool is_timed;
} __attribute__((aligned(64)));

#define IBP_ENVELOPE_PLACES 1024

/* The table. Before ibp_envelopes_begin, the table is an array of free entries that is never written. */
extern IBP_INTERNAL struct ibp_envelope *ibp_envelopes;

/* A message number that is never reached: no message is sampled. */
#define IBP_NEVER ((uint64_t)INT64_MAX)

/* Return the key of an envelope, from the arguments of a call. */
static inline uint64_t ibp_envelope_key(ibp_handle communicator, int peer, int tag, enum ibp_side side)
{
    const uint64_t whom = (uint64_t)(uint32_t)peer << 32 | (uint32_t)tag;
    const uint64_t key = (uint64_t)communicator * UINT64_C(0xd1342543de82ef95) ^ whom * UINT64_C(0x9e3779b97f4a7c15) ^
                         (uint64_t)side * UINT64_C(0x2545f4914f6cdd1d);

    return key | 1;
}

/* Return the envelope of a message. Return NULL if the message may have to be sampled, or if the envelope is not at its
 * hash position. */
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

/* The envelope of all messages while no samples are taken: they are not numbered. */
extern IBP_INTERNAL struct ibp_envelope ibp_envelope_of_none;

/* Create the table. Return false if memory is exhausted. */
bool ibp_envelopes_begin(void);

/* The number of a message. */
struct ibp_numbered {
    /* 0 for a message without a number. */
    uint64_t stream;
    uint64_t communicator;
    uint64_t number;
    uint32_t peer;
    /* The message is timed: the hash chooses it, or each message of the envelope is timed at present. */
    bool is_sampled, is_timed;
    uint8_t stratum, keeps, stream_keeps;
    /* NULL for a message without a number. The pointer is valid until an envelope is forgotten. */
    struct ibp_envelope *envelope;
};

/* Number a message from the arguments of a call. `class` is 0 for a small message, otherwise the size class of its
 * number of items. Classes are sampled separately, so that rare large messages have samples too. The sender and the
 * receiver of a message may see different classes. ibp_communicator_learn must have been called before
 * (libmpi/communicators.h). This function and all below require the lock. */
struct ibp_numbered ibp_envelope_number(ibp_handle communicator, int peer, int tag, enum ibp_side side, unsigned class);

/* Return the number of the next message of an envelope, without counting the message. */
struct ibp_numbered ibp_envelope_peek(ibp_handle communicator, int peer, int tag, enum ibp_side side);

/* ibp_envelope_stop: stop sampling the messages of an envelope. ibp_envelopes_disorder: stop sampling all messages
 * received on a communicator. If `communicator` is 0, do this on all communicators. */
void ibp_envelope_stop(ibp_handle communicator, int peer, int tag, enum ibp_side side);
void ibp_envelopes_disorder(ibp_handle communicator);

/* Stop sampling all messages, including sent messages. */
void ibp_envelopes_stop(void);

/* Forget the envelopes of a communicator that is freed. */
void ibp_envelopes_forget(ibp_handle communicator);

/* Add all numbered messages to the totals in the recording. */
void ibp_envelopes_end(void);

#endif
