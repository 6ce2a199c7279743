/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samples: the times of some collectives and messages. All processes that take part in a collective or message sample
 * it, without communication about the choice. Each collective and each message has a number in a stream, such as all
 * collectives on a communicator. All participants know the stream and the number, and a hash of both decides.
 *
 * At level L, one of 2^L successive numbers of a stream is kept. Numbers that are kept at level L + 1 are also kept at
 * level L. The collectives that took longest, or that this process entered latest, are kept as well, so that readers
 * can see which process was late. So are the messages that took longest or were posted latest, while each message is
 * timed.
 *
 * The space for samples is fixed. When it is full, the level of the stratum with the most samples rises. Each stratum
 * is a group of streams or of kinds of calls, so that frequent calls do not displace rare calls.
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

/* Samples are taken now. */
extern IBP_INTERNAL bool ibp_sampling;

/* The common fields of all records of samples. */
struct ibp_sample {
    uint64_t communicator;
    uint64_t number;
    uint32_t origin;
    uint32_t end_origin;
    uint32_t level;
    uint32_t others[11];
    uint64_t score_ns;
};

/* Begin and end taking samples. */
void ibp_samples_begin(struct ibp_process *process);
void ibp_samples_end(void);

/* Mix a number into a hash. */
static inline uint64_t ibp_sample_hash(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) + UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

/* Return the highest level at which a number of a stream is kept. */
unsigned ibp_sample_keeps(uint64_t stream, uint64_t number);

/* Return the first number, from `number` on, that is kept at a level. */
uint64_t ibp_sample_next(uint64_t stream, uint64_t number, unsigned level);

/* Return the present level of a stratum. */
unsigned ibp_sample_level(enum ibp_instance instance, unsigned stratum);

/* Return a record for a collective or message; NULL if the present levels do not keep it. `keeps`: the highest level
 * that keeps its number. `stream_keeps`: the highest level of streams that keeps its stream. The caller fills the
 * record, and stores the hash that identifies the communicator last. */
void *ibp_sample_take(enum ibp_instance instance, unsigned stratum, unsigned keeps, unsigned stream_keeps);

/* Collectives and messages whose score (`score_ns` of their records) is above this value are kept, even if the hash
 * does not choose them. */
extern IBP_INTERNAL uint64_t ibp_long_ns[IBP_INSTANCES];

/* Return a record for a collective or message with a score above ibp_long_ns; NULL if the recording is full. The record
 * may be the former record of the lowest score. The caller fills the record, and stores the hash that identifies the
 * communicator last. */
void *ibp_sample_take_long(enum ibp_instance instance, uint64_t score_ns);

/* Record from which processes this process receives in neighbourhood collectives; the last source is this process. The
 * records use a part of the space for message samples. If not all sources fit, a collective is counted as unsampled.
 * Readers notice missing sources, because each record has the number of all sources. */
void ibp_samples_add_sources(uint64_t communicator, uint32_t origin, const uint32_t *sources, uint32_t count);

/* Set the level of streams, and drop samples of streams that it does not keep. */
void ibp_samples_raise_streams(unsigned level);

/* Count a collective or message that cannot be sampled. */
void ibp_sample_refuse(enum ibp_instance instance, enum ibp_unsampled reason);

/* Count collectives or messages. */
void ibp_sample_count(enum ibp_instance instance, uint64_t count);

/* Record a reading of both clocks, if the last reading was more than a second ago. */
void ibp_samples_note_clock(uint64_t now_ns);

/* Move the samples of one region to another. */
void ibp_samples_move(uint32_t from, uint32_t into);

#endif
