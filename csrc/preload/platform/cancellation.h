/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Cancellation of threads. A cancelled thread ends at its next cancellation point: a call of the C library that may
 * wait, such as open or read. MPI calls need not be cancellation points. Therefore ibprof's work in MPI calls must not
 * be a cancellation point: a thread that ended there would not release ibprof's locks.
 */
#ifndef IBPROF_PLATFORM_CANCELLATION_H
#define IBPROF_PLATFORM_CANCELLATION_H

#include "platform/system.h"

#include <pthread.h>

#pragma weak pthread_setcancelstate /* old C libraries define this function in libpthread, which not all programs load */

/* Disable cancellation. Return the former state, which ibp_cancellation_allow restores. */
static inline int ibp_cancellation_hold(void)
{
    int before = PTHREAD_CANCEL_ENABLE;

    if (pthread_setcancelstate) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void ibp_cancellation_allow(int before)
{
    if (pthread_setcancelstate) pthread_setcancelstate(before, NULL);
}

#endif
