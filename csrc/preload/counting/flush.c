/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/flush.h"
#include "counting/periodic.h"
#include "platform/log.h"
#include "recording/recording.h"

#include <string.h>

static uint64_t period_ns, next_ns;

static bool is_due(uint64_t now_ns)
{
    return now_ns >= __atomic_load_n(&next_ns, __ATOMIC_RELAXED);
}

static void run(uint64_t now_ns)
{
    const int error = ibp_recording_copy();

    (void)now_ns;
    if (error) ibp_log(1, "the recording was not copied: %s", strerror(error));
    /* The clock is read again, because copying may have taken long. */
    __atomic_store_n(&next_ns, ibp_clock_coarse_ns() + period_ns, __ATOMIC_RELAXED);
}

void ibp_flush_open(void)
{
    static struct ibp_periodic_task task = {.is_due = is_due, .run = run};

    period_ns = ibp_recording_flush_seconds() * UINT64_C(1000000000);
    if (!period_ns) return;
    next_ns = ibp_clock_coarse_ns() + period_ns;
    ibp_periodic_add(&task);
}
