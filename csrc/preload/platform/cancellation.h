/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * pthread_cancel ends a thread in its next call of the C library that may wait, such as open or read. A send without
 * ibprof may make no such call. ibprof's calls must therefore not be cancellation points: a thread that ends there
 * would keep its locks.
 */
#ifndef IBPROF_PLATFORM_CANCELLATION_H
#define IBPROF_PLATFORM_CANCELLATION_H

#include "platform/system.h"

#include <pthread.h>

#pragma weak pthread_setcancelstate /* once part of libpthread, without which no thread is cancelled */

/* Disable cancellation. Return the former state, for ibp_cancellation_allow. */
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
