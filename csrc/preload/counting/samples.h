/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samples: the times of some collectives and messages. All processes that take part in an instance sample it, without a
 * message between them. Each instance has a number in a stream; all participants know both, and a hash of both decides.
 *
 * At level L one instance is kept of each block of 2^L in its stream. Instances of level L + 1 are also of level L. The
 * collectives that took longest, or that this process entered latest, are kept as well: they show the late process to
 * the others.
 *
 * The space for samples is fixed. When it is full, the level of the stratum with the most samples rises. Strata are
 * groups of streams or of kinds of calls, so that frequent calls do not displace rare ones.
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

/* Samples are taken, because times are recorded. */
extern IBP_INTERNAL bool ibp_sampling;

/* The beginning of all records of samples. */
struct ibp_sample {
    uint64_t communicator;
    uint64_t number;
    uint32_t origin;
    uint32_t end_origin;
    uint32_t level;
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

/* Return the highest level at which an instance of a stream is kept. */
unsigned ibp_sample_keeps(uint64_t stream, uint64_t number);

/* Return the first number, from `number` on, that a level keeps. */
uint64_t ibp_sample_next(uint64_t stream, uint64_t number, unsigned level);

/* Return the level of a stratum. */
unsigned ibp_sample_level(enum ibp_instance instance, unsigned stratum);

/* Return a record for an instance that is kept up to a level, with a stream that is kept up to another level of
 * streams. NULL where the instance is not kept. The caller fills the record, the name of the communicator last. */
void *ibp_sample_take(enum ibp_instance instance, unsigned stratum, unsigned keeps, unsigned stream_keeps);

/* Collectives with a larger score (struct ibp_collective_sample) are kept, even if the hash does not choose them. */
extern IBP_INTERNAL uint64_t ibp_long_ns;

/* Return a record for such a collective, which replaces the record with the lowest score; NULL without space. The
 * caller fills the record, the name of the communicator last. */
void *ibp_sample_take_long(uint64_t score_ns);

/* Record the sources of this process in a graph, with itself last. They use a part of the space of message samples. A
 * graph is counted as unsampled if not all of it fits. Readers notice that, because each record has the number of all
 * sources. */
void ibp_samples_add_sources(uint64_t communicator, uint32_t origin, const uint32_t *sources, uint32_t count);

/* Drop samples of streams that a level of streams does not keep. */
void ibp_samples_raise_streams(unsigned level);

/* Count an instance that cannot be sampled. */
void ibp_sample_refuse(enum ibp_instance instance, enum ibp_unsampled reason);

/* Count instances. */
void ibp_sample_count(enum ibp_instance instance, uint64_t count);

/* Note the clock, if the last note is long ago. */
void ibp_samples_note_clock(uint64_t now_ns);

/* Move the samples of one region to another. */
void ibp_samples_move(uint32_t from, uint32_t into);

#endif
