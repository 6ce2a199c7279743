/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The lock of all state that MPI calls change. At thread levels below MPI_THREAD_MULTIPLE, only one thread at a time is
 * in MPI, so ibprof does not take the lock.
 */
#ifndef IBPROF_LIBMPI_LOCK_H
#define IBPROF_LIBMPI_LOCK_H

#include "platform/system.h"

#include <stdbool.h>

extern IBP_INTERNAL bool ibp_threads_multiple;
extern IBP_INTERNAL char ibp_spinlock;
void ibp_lock_slowly(void);

/* Call this only with MPI_THREAD_MULTIPLE. The fast path of a message only tries to take the lock. If the lock is not
 * free, a slow path waits for the lock. So the fast path calls no function, and saves no registers. */
static inline bool ibp_try_lock_among_threads(void)
{
    return IBP_LIKELY(!__atomic_test_and_set(&ibp_spinlock, __ATOMIC_ACQUIRE));
}

static inline void ibp_lock_among_threads(void)
{
    if (!ibp_try_lock_among_threads()) ibp_lock_slowly();
}

static inline void ibp_unlock_among_threads(void)
{
    __atomic_clear(&ibp_spinlock, __ATOMIC_RELEASE);
}

static inline void ibp_lock(void)
{
    if (IBP_UNLIKELY(ibp_threads_multiple)) ibp_lock_among_threads();
}

static inline void ibp_unlock(void)
{
    if (IBP_UNLIKELY(ibp_threads_multiple)) ibp_unlock_among_threads();
}

#endif
