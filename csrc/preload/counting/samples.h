/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samples: the times of some collectives and messages. All processes of a collective or message make the same decision
 * whether to sample the call, without communication. Each collective and each message has a number in a stream; for
 * example, all collectives on a communicator are a stream. A hash of stream and number decides whether the collective
 * or message is sampled.
 *
 * At level L, only one of 2^L successive numbers of a stream is kept. If level L + 1 keeps a number, level L keeps the
 * number too. Messages also have a stream level: at stream level S, a hash keeps one of 2^S streams, on average. In
 * addition, ibprof keeps collectives that took long, and collectives that this process started long after the previous
 * collective. So the samples show which process was late. While each message is timed (counting/envelopes.h), ibprof
 * also keeps messages whose completing call took long, and messages that were posted after a long pause.
 *
 * The space for samples is fixed. When the space is full, the level of the stratum with the most samples rises. A
 * stratum contains the collectives of some operations and sizes, or the messages of some communicators, tags and sizes.
 * With strata, frequent calls do not displace rare calls.
 *
 * All functions require the lock.
 */
#ifndef IBPROF_COUNTING_SAMPLES_H
#define IBPROF_COUNTING_SAMPLES_H

#include "platform/system.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_SAMPLE_STRATA 64
#define IBP_SAMPLE_LEVELS 48

extern IBP_INTERNAL bool ibp_sampling;

/* The members that all records of samples share. */
struct ibp_sample {
    uint64_t communicator;
    uint64_t number;
    uint32_t origin;
    uint32_t end_origin;
    uint32_t level;
    uint32_t others[11];
    uint64_t score_ns;
};

void ibp_samples_begin(struct ibp_process *process);
void ibp_samples_end(void);

static inline uint64_t ibp_sample_hash(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) + UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

/* Return the highest level at which a number of a stream is kept. */
unsigned ibp_sample_keeps(uint64_t stream, uint64_t number);

/* Return the first number that is kept at a level and is at least `number`. */
uint64_t ibp_sample_next(uint64_t stream, uint64_t number, unsigned level);

unsigned ibp_sample_level(enum ibp_instance instance, unsigned stratum);

/* Return a record for a collective or message; NULL if the present levels exclude the collective or message. `keeps`:
 * the highest level that keeps the number. `stream_keeps`: the highest stream level that keeps the stream. The caller
 * fills the record, and sets `communicator` last. */
void *ibp_sample_take(enum ibp_instance instance, unsigned stratum, unsigned keeps, unsigned stream_keeps);

/* If the score (`score_ns`) of a collective or message exceeds this value, ibprof keeps the sample even if the hash
 * does not choose the call. */
extern IBP_INTERNAL uint64_t ibp_long_ns[IBP_INSTANCES];

/* Return a record for a collective or message with a score above ibp_long_ns; NULL if the recording is full. If the
 * space for records of this kind is full, the record with the lowest score is reused. The caller fills the record, and
 * sets `communicator` last. */
void *ibp_sample_take_long(enum ibp_instance instance, uint64_t score_ns);

/* Record from which processes this process receives in neighbourhood collectives. The last element of `sources` is this
 * process. If the space for message samples is too small for all sources, increase the number of unsampled
 * collectives by one. Each record contains `count`, so that readers notice missing sources. */
void ibp_samples_add_sources(uint64_t communicator, uint32_t origin, const uint32_t *sources, uint32_t count);

/* Set the stream level: keep 1 of 2^level streams, on average, and drop the samples of all other streams. */
void ibp_samples_raise_streams(unsigned level);

/* Count a collective or message that cannot be sampled, by reason. */
void ibp_sample_refuse(enum ibp_instance instance, enum ibp_unsampled reason);

void ibp_sample_count(enum ibp_instance instance, uint64_t count);

/* Record a reading of the monotonic clock and the Unix clock, if the last reading was more than a second ago. */
void ibp_samples_note_clock(uint64_t now_ns);

/* Move the samples of region `from` to region `into`. */
void ibp_samples_move(uint32_t from, uint32_t into);

#endif
