/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Clocks: exact, coarse, and the processor's cycle counter.
 */
#ifndef IBPROF_PLATFORM_CLOCK_H
#define IBPROF_PLATFORM_CLOCK_H

#include <stdint.h>

/* Return nanoseconds of the Unix clock. */
uint64_t ibp_clock_ns(void);

/* Return nanoseconds since an unspecified moment, the same one for all processes of a host. */
uint64_t ibp_clock_monotonic_ns(void);

/* Return nanoseconds since an unspecified moment. The clock steps every few milliseconds; a read takes a few
 * nanoseconds. */
uint64_t ibp_clock_coarse_ns(void);

/* Return the processor's cycle counter; 0 without a counter that a program may read. */
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

/* Return the increase of that counter in roughly a tenth of a millisecond; 0 where it must not be read. */
uint64_t ibp_clock_cycles_step(void);

#endif
