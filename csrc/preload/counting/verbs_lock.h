/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The verbs lock: it protects all state that verbs calls change, except the counters of posts. Threads rarely take this
 * lock, and hold the lock for a few hundred instructions.
 */
#ifndef IBPROF_COUNTING_VERBS_LOCK_H
#define IBPROF_COUNTING_VERBS_LOCK_H

#include "recording/process_state.h"

#include <sched.h>

static inline void ibp_verbs_lock(void)
{
    while (__atomic_test_and_set(&ibp_process_state->verbs_lock, __ATOMIC_ACQUIRE)) sched_yield();
}

static inline void ibp_verbs_unlock(void)
{
    __atomic_clear(&ibp_process_state->verbs_lock, __ATOMIC_RELEASE);
}

#endif
