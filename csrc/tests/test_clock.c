/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "check.h"
#include "platform/clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t step_s;

/* Replaces libc's function, so that the Unix clock can be stepped. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int failed = (int)syscall(SYS_clock_gettime, clock, now);

    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += step_s;
    return failed;
}

static void steps_of_the_unix_clock_change_no_duration(void)
{
    const uint64_t second = 1000000000, first = ibp_clock_ns();

    CHECK(first / second - (uint64_t)time(NULL) + 1 <= 2);
    step_s = -3600;
    const uint64_t after_back = ibp_clock_ns();

    CHECK(after_back >= first && after_back - first < 60 * second);
    step_s = 7200;
    CHECK(ibp_clock_ns() >= after_back && ibp_clock_ns() - first < 60 * second);
}

int main(void)
{
    steps_of_the_unix_clock_change_no_duration();
    return 0;
}
