/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "platform/clock.h"

#include <sys/prctl.h>
#include <time.h>

#ifndef CLOCK_MONOTONIC_COARSE
#define CLOCK_MONOTONIC_COARSE 6
#endif

static uint64_t nanoseconds(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_nsec;
}

uint64_t ibp_clock_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return nanoseconds(&now);
}

/* Return the Unix time when the monotonic clock was 0. Read both clocks four times and use the fastest reading, because
 * the other readings may have been interrupted. */
static uint64_t find_unix_at_zero(void)
{
    uint64_t least = UINT64_MAX, found = 0;

    for (unsigned i = 0; i < 4; i++) {
        struct timespec now;
        const uint64_t before = ibp_clock_monotonic_ns();
        uint64_t took;

        clock_gettime(CLOCK_REALTIME, &now);
        took = ibp_clock_monotonic_ns() - before;
        if (took >= least) continue;
        least = took;
        found = nanoseconds(&now) - before - took / 2;
    }
    return found;
}

uint64_t ibp_clock_unix(uint64_t monotonic_ns)
{
    static uint64_t unix_at_zero; /* 0 until the first call */
    uint64_t at_zero = __atomic_load_n(&unix_at_zero, __ATOMIC_RELAXED);

    if (!at_zero) {
        const uint64_t found = find_unix_at_zero();

        /* If several threads compute the value at once, the first value is kept. */
        if (__atomic_compare_exchange_n(&unix_at_zero, &at_zero, found, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            at_zero = found;
    }
    return at_zero + monotonic_ns;
}

uint64_t ibp_clock_ns(void)
{
    return ibp_clock_unix(ibp_clock_monotonic_ns());
}

uint64_t ibp_clock_coarse_ns(void)
{
    struct timespec now;

    return clock_gettime(CLOCK_MONOTONIC_COARSE, &now) ? 0 : nanoseconds(&now);
}

uint64_t ibp_clock_cycles_step(void)
{
#if defined(__x86_64__)
    int permitted = PR_TSC_ENABLE;

    /* If a sandbox forbids reads of the counter, a read would cause a signal. At 1 to 5 GHz, 2^18 cycles take roughly
     * 0.1 ms. */
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
