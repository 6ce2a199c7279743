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

/* Reads IBPROF_INTERVAL: whether messages are to look. Called before there is a source, whose hooks are others then. */
void ibp_ticks_select(void);

/* From now on moments are noted, if they are asked for, in a job of so many ranks; 0 where peers are known by address. */
void ibp_ticks_open_timeline(uint32_t world_size);

/* The end of counting. */
void ibp_ticks_close(void);

/* Looks at the clock. */
void ibp_tick_slowly(void);

/* A counter of the processor's says when a clock is worth a look: so many steps are a part of a millisecond, whatever the
 * processor. Where there is none the step is 0, and then it always is. */
struct ibp_ticks {
    uint64_t step, looked;
};
extern IBP_INTERNAL struct ibp_ticks ibp_ticks;

static inline uint64_t ibp_ticks_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

/* Not to be called with the lock held. */
static inline void ibp_tick_now(void)
{
    const uint64_t looked = __atomic_load_n(&ibp_ticks.looked, __ATOMIC_RELAXED);

    if (IBP_LIKELY(ibp_ticks.step) && IBP_LIKELY(ibp_ticks_now() - looked < ibp_ticks.step)) return;
    ibp_tick_slowly();
}

static inline void ibp_tick(void)
{
    if (IBP_UNLIKELY(ibp_ticking)) ibp_tick_now();
}

#endif
