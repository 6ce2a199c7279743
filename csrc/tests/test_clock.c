/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "check.h"
#include "platform/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t step_s;
static bool is_interrupted = true;

/* Replaces libc's function. The test can change the Unix clock by `step_s`, and delay the first reading. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int failed = (int)syscall(SYS_clock_gettime, clock, now);

    if (failed || clock != CLOCK_REALTIME) return failed;
    now->tv_sec += step_s;
    if (is_interrupted) nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    is_interrupted = false;
    return 0;
}

static uint64_t read_unix_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void an_interrupted_reading_is_repeated(void)
{
    CHECK(ibp_clock_ns() && !is_interrupted);
    CHECK(read_unix_clock() + 40000000 - ibp_clock_ns() < 80000000);
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
    an_interrupted_reading_is_repeated();
    steps_of_the_unix_clock_change_no_duration();
    return 0;
}
