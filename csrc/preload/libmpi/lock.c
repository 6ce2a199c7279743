/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/lock.h"

#include <sched.h>

bool ibp_threads_multiple;
char ibp_spinlock;

void ibp_lock_slowly(void)
{
    do
        while (__atomic_load_n(&ibp_spinlock, __ATOMIC_RELAXED)) sched_yield();
    while (__atomic_test_and_set(&ibp_spinlock, __ATOMIC_ACQUIRE));
}
