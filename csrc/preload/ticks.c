/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "system.h"
#include "ticks.h"
#include "counters.h"
#include "recording.h"
#include "text.h"
#include "timeline.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#ifndef CLOCK_MONOTONIC_COARSE
#define CLOCK_MONOTONIC_COARSE 6
#endif

bool ibp_ticking, ibp_ticking_messages;
struct ibp_ticks ibp_ticks;

static uint64_t interval_ms;

static struct {
    uint64_t period_ns;
    uint64_t next_ns; /* never, where nothing is to be copied */
} flush = {.next_ns = UINT64_MAX};

/* A few milliseconds coarse, and read in as many nanoseconds. */
static uint64_t coarse_ns(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now)) return 0;
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void copy(uint64_t now)
{
    int error;

    if (now < flush.next_ns) return;
    error = ibp_recording_copy();
    if (error) ibp_log(1, "the recording was not copied: %s", strerror(error));
    __atomic_store_n(&flush.next_ns, coarse_ns() + flush.period_ns, __ATOMIC_RELAXED);
}

/* How many steps of the processor's counter are some tenth of a millisecond. */
static uint64_t ticks_step(void)
{
#if defined(__x86_64__)
    int permitted = PR_TSC_ENABLE;

    /* A sandbox may forbid it, at the cost of a signal. Processors count at 1 to 5 GHz. */
    if (prctl(PR_GET_TSC, &permitted) || permitted != PR_TSC_ENABLE) return 0;
    return 1 << 18;
#elif defined(__aarch64__)
    uint64_t hertz;

    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
    return hertz >> 13;
#else
    return 0;
#endif
}

void ibp_tick_slowly(void)
{
    const uint64_t now = coarse_ns();
    const bool snapshot = ibp_timeline_is_due(now);

    if (ibp_ticks.step) __atomic_store_n(&ibp_ticks.looked, ibp_ticks_now(), __ATOMIC_RELAXED);
    if (!snapshot && now < __atomic_load_n(&flush.next_ns, __ATOMIC_RELAXED)) return;
    ibp_lock();
    if (ibp_timeline_is_due(now)) ibp_timeline_take(now); /* another thread may have been here first */
    copy(now);
    ibp_unlock();
}

void ibp_ticks_open(void)
{
    flush.period_ns = ibp_recording_flush_seconds() * UINT64_C(1000000000);
    if (!flush.period_ns) return;
    flush.next_ns = coarse_ns() + flush.period_ns;
    ibp_ticks.step = ticks_step();
    ibp_ticking = true;
}

void ibp_ticks_select(void)
{
    const char *given = getenv("IBPROF_INTERVAL");

    interval_ms = given ? ibp_text_number(given) : 0;
    ibp_ticking_messages = interval_ms > 0;
}

void ibp_ticks_open_timeline(uint32_t world_size)
{
    if (!interval_ms) return;
    ibp_timeline_open(interval_ms, world_size, coarse_ns());
    ibp_ticks.step = ticks_step();
    ibp_ticking = true;
}

void ibp_ticks_close(void)
{
    if (ibp_ticking_messages) ibp_timeline_take(coarse_ns());
    ibp_ticking_messages = false;
    ibp_ticking = false;
}
