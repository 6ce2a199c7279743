/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/periodic.h"
#include "libmpi/lock.h"

bool ibp_periodic, ibp_periodic_in_messages;
struct ibp_periodic_cycles ibp_periodic_cycles;

static struct ibp_periodic_task *tasks;

static bool is_any_due(uint64_t now_ns)
{
    bool due = false;

    for (const struct ibp_periodic_task *task = tasks; task; task = task->next) due |= task->is_due(now_ns);
    return due;
}

void ibp_periodic_run(void)
{
    const uint64_t now_ns = ibp_clock_coarse_ns();
    const bool due = is_any_due(now_ns);

    if (ibp_periodic_cycles.step) __atomic_store_n(&ibp_periodic_cycles.looked, ibp_clock_cycles(), __ATOMIC_RELAXED);
    if (!due) return;
    ibp_lock();
    for (const struct ibp_periodic_task *task = tasks; task; task = task->next)
        if (task->is_due(now_ns)) task->run(now_ns); /* another thread may have run the task */
    ibp_unlock();
}

void ibp_periodic_add(struct ibp_periodic_task *task)
{
    task->next = tasks;
    tasks = task;
    ibp_periodic_cycles.step = ibp_clock_cycles_step();
    ibp_periodic = true;
}

void ibp_periodic_end(void)
{
    ibp_periodic_in_messages = false;
    ibp_periodic = false;
}
