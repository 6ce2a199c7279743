/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A thread that was asked to end (pthread_cancel) ends in the next call of the C library that may wait, such as open or read.
 * A send without us may have none of these, so ours must not be the place: locks would stay taken.
 */
#ifndef IBPROF_PLATFORM_CANCELLATION_H
#define IBPROF_PLATFORM_CANCELLATION_H

#include "platform/system.h"

#include <pthread.h>

#pragma weak pthread_setcancelstate /* lay in libpthread once, without which no thread is cancelled */

/* Returns what ibp_cancellation_allow is to be given. */
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
