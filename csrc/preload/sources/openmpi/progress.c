/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/progress.h"
#include "counting/periodic.h"
#include "counting/times.h"
#include "libmpi/got.h"
#include "libmpi/lock.h"
#include "sources/openmpi/table.h"

/* The original opal_progress. It returns a number only in some versions of Open MPI. */
static int (*next_progress)(void);

static int progress(void)
{
    uint64_t begin;
    int result;

    /* Check the clock here, because a waiting program sends no messages that would check the clock. */
    if (IBP_UNLIKELY(ibp_periodic_in_messages)) ibp_periodic_check_now();
    begin = ibp_times_progress_begin();
    if (!begin) return next_progress();
    result = next_progress();
    ibp_times_progress_end(begin);
    return result;
}

/* The original ompi_sync_wait_mt. Under MPI_THREAD_MULTIPLE, each thread waits for its request in this function. */
static int (*next_thread_wait)(void *);

static int wait_of_thread(void *awaited)
{
    struct ibp_time *const time = ibp_thread_waits.time;
    const uint64_t begin = ibp_times_thread_wait_begin();
    const int result = next_thread_wait(awaited);

    if (begin) ibp_times_thread_wait_end(time, begin);
    return result;
}

void ibp_openmpi_progress_hook(void)
{
    if (!ibp_times_are_wanted()) return;
    if (ibp_threads_multiple) {
        /* The PML component `ucx` waits for sends and receives in UCX, not in the hooked function. */
        ibp_times_see_sends = ibp_openmpi_sends_by_ob1();
        ibp_times_see_thread_waits =
            ibp_times_see_sends &&
            ibp_got_redirect_in_parts("ompi_sync_wait_mt", (void *)wait_of_thread, &next_thread_wait) > 0;
        return;
    }
    /* opal_progress is called by libmpi, by Open MPI's components and, if a program may have threads, by
     * libopen-pal. */
    ibp_times_see_progress = ibp_got_redirect_in_parts("opal_progress", (void *)progress, &next_progress) > 0;
    ibp_times_see_sends = ibp_openmpi_sends_pass_progress();
}
