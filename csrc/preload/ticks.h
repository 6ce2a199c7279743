/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What is to be done every so often: there is no thread, signal or timer of ours, so calls of the program that we are in anyhow
 * look at the clock. Those are collectives and whatever else mpi.def names, regions, and with IBPROF_INTERVAL each message too.
 */
#ifndef IBPROF_TICKS_H
#define IBPROF_TICKS_H

#include "system.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether there is anything to be done every so often; and whether messages are to look as well. */
extern IBP_INTERNAL bool ibp_ticking, ibp_ticking_messages;

/* Whether the recording is to be copied on the way. */
void ibp_ticks_open(void);

/* Reads IBPROF_INTERVAL, in a job of so many ranks. */
void ibp_ticks_open_timeline(uint32_t world_size);

/* The end of counting. */
void ibp_ticks_close(void);

void ibp_tick_slowly(void);

/* Not to be called with the lock held. */
static inline void ibp_tick(void)
{
    if (IBP_UNLIKELY(ibp_ticking)) ibp_tick_slowly();
}

#endif
