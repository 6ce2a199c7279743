/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Totals over time, by group of peers: IBPROF_INTERVAL. Not a message adds to them; they are sums of the counters at some
 * moments, so that what a run sent in all its intervals is what its counters say, also when it is killed between two of them.
 */
#ifndef IBPROF_COUNTING_TIMELINE_H
#define IBPROF_COUNTING_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

/* Reads IBPROF_INTERVAL: whether messages look at the clock. Called before a source attaches, whose hooks depend on it. */
void ibp_timeline_select(void);

/* Takes snapshots from now on, if they are asked for, of a job of that many ranks; 0 where peers are known by address. */
void ibp_timeline_begin(uint32_t world_size);

/* Takes the last one, if they were asked for. */
void ibp_timeline_end(void);

/* The same with a given interval, by a clock that started at any time: whether a snapshot is due, and taking one of what is
 * counted now, with the lock held. Each message asks. */
void ibp_timeline_open(uint64_t asked_ms, uint32_t world_size, uint64_t now_ns);
bool ibp_timeline_is_due(uint64_t now_ns);
void ibp_timeline_take(uint64_t now_ns);

#endif
