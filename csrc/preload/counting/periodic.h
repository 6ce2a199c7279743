/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Work that is due from time to time. ibprof has no thread, signal or timer for it. The program's own calls check the
 * clock: collectives and others of mpi.def, regions, and with IBPROF_INTERVAL each message.
 */
#ifndef IBPROF_COUNTING_PERIODIC_H
#define IBPROF_COUNTING_PERIODIC_H

#include "platform/clock.h"
#include "platform/system.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether there is such work; and whether messages check the clock for it too. */
extern IBP_INTERNAL bool ibp_periodic, ibp_periodic_in_messages;

/* Times are those of ibp_clock_coarse_ns. */
struct ibp_periodic_task {
    /* Called without the lock, by any thread. */
    bool (*is_due)(uint64_t now_ns);
    /* Called with the lock held. */
    void (*run)(uint64_t now_ns);
    struct ibp_periodic_task *next;
};

/* Add a task, which runs before those that were added earlier. */
void ibp_periodic_add(struct ibp_periodic_task *task);

/* End all periodic work. */
void ibp_periodic_end(void);

/* Run the tasks that are due. */
void ibp_periodic_run(void);

/* The processor's counter limits reads of the clock to one in `step` cycles, a fraction of a millisecond on any
 * processor. Where there is no counter the step is 0, and the clock is read each time. */
struct ibp_periodic_cycles {
    uint64_t step, looked;
};
extern IBP_INTERNAL struct ibp_periodic_cycles ibp_periodic_cycles;

/* Must not be called with the lock held. */
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
