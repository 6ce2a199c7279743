/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/openmpi.h"
#include "counting/communicator_contexts.h"
#include "counting/current_call.h"
#include "counting/periodic.h"
#include "counting/requests.h"
#include "libmpi/communicators.h"
#include "libmpi/datatypes.h"
#include "libmpi/lock.h"
#include "platform/text.h"
#include "sources/openmpi/completion.h"
#include "sources/openmpi/completion_probe.h"
#include "sources/openmpi/hooked_starts.h"
#include "sources/openmpi/progress.h"
#include "sources/openmpi/receives.h"
#include "sources/openmpi/sends.h"
#include "sources/openmpi/starts.h"
#include "sources/openmpi/table.h"
#include "sources/openmpi/tags.h"

#include <stdio.h>

/* `receives_seen`: true if receives are hooked. `tags_known`: true if the tags of nonblocking collectives are known. */
static bool receives_seen, tags_known;

/* -- communicators ------------------------------------------------------------------------------------------------- */

static int hook_add_comm(ibp_handle communicator)
{
    ibp_lock();
    ibp_context_forget(communicator);
    if (ibp_current_call.operation && ibp_current_call.kind == IBP_CALL_WINDOW)
        ibp_communicator_note_carrier(communicator);
    ibp_unlock();
    return ibp_openmpi_next.add_comm(communicator);
}

static int hook_del_comm(ibp_handle communicator)
{
    ibp_lock();
    ibp_context_forget(communicator);
    ibp_unlock();
    return ibp_openmpi_next.del_comm(communicator);
}

/* -- hooks --------------------------------------------------------------------------------------------------------- */

#define HOOK(slot, function) {#slot, (void *)(function), &ibp_openmpi_next.slot}

static const struct ibp_openmpi_hook hooks[] = {
    HOOK(isend_init, ibp_openmpi_hook_isend_init),
    HOOK(start, ibp_openmpi_hook_start),
    HOOK(add_comm, hook_add_comm),
    HOOK(del_comm, hook_del_comm),
};

/* ibprof installs one of three sets of hooks: plain hooks, hooks that check the clock, or hooks for several threads. */
static const struct ibp_openmpi_hook send_hooks[] = {
    HOOK(send, ibp_openmpi_hook_send),
    HOOK(isend, ibp_openmpi_hook_isend),
};
static const struct ibp_openmpi_hook periodic_send_hooks[] = {
    HOOK(send, ibp_openmpi_hook_send_periodic),
    HOOK(isend, ibp_openmpi_hook_isend_periodic),
};
static const struct ibp_openmpi_hook threads_send_hooks[] = {
    HOOK(send, ibp_openmpi_hook_send_among_threads),
    HOOK(isend, ibp_openmpi_hook_isend_among_threads),
};

/* Hooks that are installed only if the layout of requests is known. */
static const struct ibp_openmpi_hook receive_hooks[] = {
    HOOK(irecv_init, ibp_openmpi_hook_irecv_init), HOOK(mprobe, ibp_openmpi_hook_mprobe),
    HOOK(improbe, ibp_openmpi_hook_improbe),       HOOK(mrecv, ibp_openmpi_hook_mrecv),
    HOOK(imrecv, ibp_openmpi_hook_imrecv),
};

/* If the layout of requests is known, ibprof installs one of two sets of hooks. */
static const struct ibp_openmpi_hook plain_receive_hooks[] = {
    HOOK(recv, ibp_openmpi_hook_recv),
    HOOK(irecv, ibp_openmpi_hook_irecv),
};
static const struct ibp_openmpi_hook threads_receive_hooks[] = {
    HOOK(recv, ibp_openmpi_hook_recv_among_threads),
    HOOK(irecv, ibp_openmpi_hook_irecv_among_threads),
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void detach(void)
{
    ibp_openmpi_table_unhook(hooks, COUNT(hooks));
    ibp_openmpi_table_unhook(send_hooks, COUNT(send_hooks));
    ibp_openmpi_table_unhook(periodic_send_hooks, COUNT(periodic_send_hooks));
    ibp_openmpi_table_unhook(threads_send_hooks, COUNT(threads_send_hooks));
    ibp_openmpi_table_unhook(plain_receive_hooks, COUNT(plain_receive_hooks));
    ibp_openmpi_table_unhook(threads_receive_hooks, COUNT(threads_receive_hooks));
    ibp_openmpi_table_unhook(receive_hooks, COUNT(receive_hooks));
    ibp_openmpi_unhook_own_starts();
}

static void hook_receives(void)
{
    ibp_openmpi_table_hook(receive_hooks, COUNT(receive_hooks));
    ibp_openmpi_table_hook(ibp_threads_multiple ? threads_receive_hooks : plain_receive_hooks,
                           COUNT(plain_receive_hooks));
}

static int attach(char *why, size_t why_bytes)
{
    if (ibp_openmpi_table_find(why, why_bytes)) return -1;
    (void)ibp_datatypes_probe();
    ibp_openmpi_table_hook(hooks, COUNT(hooks));
    ibp_openmpi_table_hook(ibp_threads_multiple       ? threads_send_hooks
                           : ibp_periodic_in_messages ? periodic_send_hooks
                                                      : send_hooks,
                           COUNT(send_hooks));
    ibp_openmpi_probes_seen = 0;
    receives_seen = ibp_openmpi_completion_probe();
    if (ibp_openmpi_probes_seen != IBP_PROBE_MESSAGES) {
        detach();
        snprintf(why, why_bytes, "a message to itself was seen %d times, not %d, in this Open MPI (%s)",
                 ibp_openmpi_probes_seen, IBP_PROBE_MESSAGES, ibp_mpi.version);
        return -1;
    }
    /* If another tool wraps MPI_Start, a start goes through ibprof's wrappers twice: as MPI_Start before the tool, and
     * as PMPI_Start after the tool. In this case, the wrappers must search the table of requests, to count the start
     * only once. */
    ibp_requests_show_starts = receives_seen && !ibp_mpi_is_wrapped("MPI_Start") && !ibp_mpi_is_wrapped("MPI_Startall");
    ibp_openmpi_own_start = receives_seen ? ibp_openmpi_start_own : NULL;
    if (receives_seen) hook_receives();
    tags_known = ibp_openmpi_tags_probe();
    ibp_openmpi_progress_hook();
    return 0;
}

static void describe_gaps(char *notes, size_t bytes)
{
    const uint64_t missed = ibp_openmpi_requests_missed();
    char note[128];

    if (!receives_seen) ibp_text_append(notes, bytes, "received bytes cannot be seen in this build of Open MPI\n");
    if (!tags_known)
        ibp_text_append(notes, bytes, "operations of nonblocking collectives are unknown in this build of Open MPI\n");
    if (ibp_mpi.is_behind_layer) {
        ibp_text_append(
            notes, bytes,
            "the program calls Open MPI through a library that translates handles: one-sided and partitioned "
            "calls are not counted, and some messages of nonblocking collectives are unattributed\n");
        if (!receives_seen) ibp_text_append(notes, bytes, "messages of persistent requests are not counted\n");
    }
    if (missed) {
        snprintf(note, sizeof note, "%llu receives were not seen to end\n", (unsigned long long)missed);
        ibp_text_append(notes, bytes, note);
    }
}

static bool sees_host(void)
{
    return true;
}

const struct ibp_source_operations ibp_source_openmpi = {
    .source = IBP_SOURCE_OPENMPI,
    .name = "openmpi",
    .sees_host = sees_host,
    .attach = attach,
    .detach = detach,
    .describe_gaps = describe_gaps,
    .before_tag = ibp_openmpi_before_tag,
    .after_tag = ibp_openmpi_after_tag,
    .start = ibp_openmpi_start,
    .forget_request = ibp_openmpi_forget_request,
};

const struct ibp_source_operations ibp_source_openmpi_behind_layer = {
    .source = IBP_SOURCE_OPENMPI,
    .name = "openmpi",
    .attach = attach,
    .detach = detach,
    .describe_gaps = describe_gaps,
    .sees_host = sees_host,
    .before_tag = ibp_openmpi_before_tag,
    .after_tag = ibp_openmpi_after_tag,
};
