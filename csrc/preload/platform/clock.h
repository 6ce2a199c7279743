/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Clocks: exact clocks, a coarse clock, and the processor's cycle counter.
 */
#ifndef IBPROF_PLATFORM_CLOCK_H
#define IBPROF_PLATFORM_CLOCK_H

#include <stdint.h>

/* Return the Unix time in nanoseconds. The Unix clock is read only once, so later changes of the clock (NTP,
 * administrator) do not affect differences of times. */
uint64_t ibp_clock_ns(void);

/* Convert a time of the monotonic clock to Unix time; both are in nanoseconds. */
uint64_t ibp_clock_unix(uint64_t monotonic_ns);

/* Return nanoseconds since an unspecified moment, which is the same for all processes of a host. */
uint64_t ibp_clock_monotonic_ns(void);

/* Return nanoseconds since an unspecified moment, with steps of a few milliseconds. A read takes only a few
 * nanoseconds. */
uint64_t ibp_clock_coarse_ns(void);

/* Return the processor's cycle counter; 0 on processors other than x86-64 and AArch64. Call this only if
 * ibp_clock_cycles_step does not return 0. */
static inline uint64_t ibp_clock_cycles(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t cycles;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(cycles));
    return cycles;
#else
    return 0;
#endif
}

/* Return the increase of the cycle counter in roughly 0.1 ms; 0 if the counter must not be read. */
uint64_t ibp_clock_cycles_step(void);

#endif
