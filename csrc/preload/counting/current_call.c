/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/current_call.h"
#include "counting/times.h"
#include "recording/process_state.h"

IBP_THREAD_LOCAL struct ibp_current_call ibp_current_call;

unsigned ibp_current_call_number(void)
{
    return ibp_counting ? ibp_current_call.call->number : IBP_OPERATION_UNWANTED;
}

/* Source: Itanium C++ ABI: Exception Handling, 1.5.2. Unwinding has two phases: phase 1 searches for a handler, and
 * phase 2 (cleanup) removes frames. pthread_exit and pthread_cancel run only phase 2. */
#define PHASE_OF_CLEANUP 2
#define CONTINUE_UNWINDING 8

__attribute__((used)) int ibp_personality(int version, int actions, uint64_t language, void *exception, void *context)
{
    (void)version, (void)language, (void)exception, (void)context;
    if (actions & PHASE_OF_CLEANUP) {
        ibp_timing_leave();
        ibp_leave();
    }
    return CONTINUE_UNWINDING;
}
