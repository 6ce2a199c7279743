/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Totals over time, by group of peers: IBPROF_INTERVAL. Not a message adds to them; they are sums of the counters at some
 * moments, so that what a run sent in all its intervals is what its counters say, also when it is killed between two of them.
 */
#ifndef IBPROF_TIMELINE_H
#define IBPROF_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

/* Takes a snapshot every so many milliseconds from now on, of a job of so many ranks; 0 where peers are known by address. */
void ibp_timeline_open(uint64_t interval_ms, uint32_t world_size, uint64_t now_ns);

/* Whether it is time for a snapshot. Each message asks. */
bool ibp_timeline_is_due(uint64_t now_ns);

/* Takes one, of what is counted now. With the lock held. Times are of a clock that started at any time. */
void ibp_timeline_take(uint64_t now_ns);

#endif
