/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The lock of everything that MPI calls change. Below MPI_THREAD_MULTIPLE one thread at a time is in MPI, and nothing
 * is locked.
 */
#ifndef IBPROF_LIBMPI_LOCK_H
#define IBPROF_LIBMPI_LOCK_H

#include "platform/system.h"

#include <stdbool.h>

extern IBP_INTERNAL bool ibp_threads_multiple;
extern IBP_INTERNAL char ibp_spinlock;
void ibp_lock_slowly(void);

static inline void ibp_lock(void)
{
    if (IBP_UNLIKELY(ibp_threads_multiple) && __atomic_test_and_set(&ibp_spinlock, __ATOMIC_ACQUIRE)) ibp_lock_slowly();
}

static inline void ibp_unlock(void)
{
    if (IBP_UNLIKELY(ibp_threads_multiple)) __atomic_clear(&ibp_spinlock, __ATOMIC_RELEASE);
}

#endif
