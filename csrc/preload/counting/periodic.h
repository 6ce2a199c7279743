/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Periodic tasks. ibprof runs periodic tasks without a thread, signal or timer. Instead, the clock is checked by calls
 * that mark regions, and by MPI calls that mpi.def selects (such as collectives). With IBPROF_INTERVAL, each message
 * also checks the clock.
 */
#ifndef IBPROF_COUNTING_PERIODIC_H
#define IBPROF_COUNTING_PERIODIC_H

#include "platform/clock.h"
#include "platform/system.h"

#include <stdbool.h>
#include <stdint.h>

/* `ibp_periodic`: true if there are periodic tasks. `ibp_periodic_in_messages`: true if messages check the clock. */
extern IBP_INTERNAL bool ibp_periodic, ibp_periodic_in_messages;

struct ibp_periodic_task {
    /* Return whether the task is due. Any thread may call this function, without the lock. */
    bool (*is_due)(uint64_t now_ns);
    /* Do the work of the task. The lock is held. */
    void (*run)(uint64_t now_ns);
    struct ibp_periodic_task *next;
};

/* Add a task. The task that was added last runs first. */
void ibp_periodic_add(struct ibp_periodic_task *task);

void ibp_periodic_end(void);

void ibp_periodic_run(void);

/* State that limits readings of the clock. `step`: cycles of the processor's counter between two readings of the clock,
 * less than a millisecond. If `step` is 0, the processor has no counter, and each check reads the clock. `looked`:
 * value of the processor's counter at the last reading of the clock. */
struct ibp_periodic_cycles {
    uint64_t step, looked;
};
extern IBP_INTERNAL struct ibp_periodic_cycles ibp_periodic_cycles;

/* The lock must be free. */
static inline void ibp_periodic_check_now(void)
{
    const uint64_t looked = __atomic_load_n(&ibp_periodic_cycles.looked, __ATOMIC_RELAXED);

    if (IBP_LIKELY(ibp_periodic_cycles.step) && IBP_LIKELY(ibp_clock_cycles() - looked < ibp_periodic_cycles.step))
        return;
    ibp_periodic_run();
}

static inline void ibp_periodic_check(void)
{
    if (IBP_UNLIKELY(ibp_periodic)) ibp_periodic_check_now();
}

#endif
