/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/activity.h"
#include "counting/calls.h"
#include "counting/contexts.h"
#include "counting/counters.h"
#include "counting/current_call.h"
#include "counting/periodic.h"
#include "counting/regions.h"
#include "counting/times.h"
#include "libmpi/library.h"
#include "libmpi/lock.h"
#include "recording/process_state.h"

static void set_contexts(void)
{
    /* Only the long path checks whether periodic tasks are due. If ibp_labels_sends is true, sends take the long path
     * only while contexts are closed (counting/contexts.h). So while there are periodic tasks, contexts stay closed. */
    const bool is_detour = ibp_periodic && ibp_labels_sends;

    ibp_contexts_set(ibp_is_active() && ibp_counting && !ibp_threads_multiple && !is_detour ? ibp_mpi.world : 0);
}

void ibp_activity_begin(enum ibp_source source, bool labels_sends)
{
    ibp_counters.source = source;
    ibp_process_state->active = true;
    ibp_labels_sends = labels_sends;
    ibp_sites_begin();
    ibp_times_begin();
    set_contexts();
}

void ibp_activity_end(void)
{
    ibp_process_state->active = false;
    ibp_labels_sends = false;
    ibp_times_end();
    ibp_sites_end();
    set_contexts();
}

void ibp_set_counting(bool on)
{
    if (on == ibp_counting) return;
    ibp_lock();
    ibp_counting = on;
    set_contexts();
    ibp_regions_switch(on);
    ibp_unlock();
}
