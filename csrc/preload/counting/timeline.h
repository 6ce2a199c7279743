/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Snapshots: totals over time, by group of peers (IBPROF_INTERVAL). A snapshot contains sums of the counters, so
 * messages need no further counter. The differences of successive snapshots therefore add up to the final counters,
 * even if the run is killed.
 */
#ifndef IBPROF_COUNTING_TIMELINE_H
#define IBPROF_COUNTING_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

/* Read IBPROF_INTERVAL. Call this before a source attaches, because the source's hooks depend on IBPROF_INTERVAL. */
void ibp_timeline_select(void);

/* Begin snapshots of a job of `world_size` ranks, if IBPROF_INTERVAL is set. `world_size` is 0 if peers are known only
 * by address. */
void ibp_timeline_begin(uint32_t world_size);

/* Take the last snapshot, if snapshots were begun. */
void ibp_timeline_end(void);

void ibp_timeline_open(uint64_t asked_ms, uint32_t world_size, uint64_t now_ns);
/* Return whether a snapshot is due. Each message calls this. */
bool ibp_timeline_is_due(uint64_t now_ns);
/* Take a snapshot of the present counters, with the lock held. */
void ibp_timeline_take(uint64_t now_ns);

#endif
