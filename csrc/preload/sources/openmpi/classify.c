/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/classify.h"
#include "counting/communicator_contexts.h"
#include "counting/current_call.h"
#include "libmpi/communicators.h"
#include "libmpi/lock.h"
#include "sources/openmpi/tags.h"

/* Return the operation of a message without a counted tag (tags.h); `otherwise` for an application's message outside of
 * wrapped calls. */
static unsigned untagged_operation(int tag, unsigned otherwise)
{
    const bool by_user = tag >= -1; /* MPI_ANY_TAG is -1 */

    return ibp_openmpi_starting_operation(ibp_current_call.operation ? ibp_current_call.operation
                                          : by_user                  ? otherwise
                                                                     : IBP_OPERATION_UNATTRIBUTED);
}

/* Return whether Open MPI 5 uses a communicator for partitioned messages. Only the object ompi_part_persist contains
 * the handles of such communicators, and only after the first partitioned message. */
static bool is_of_partitions(ibp_handle communicator)
{
    enum { SEARCHED = 26 }; /* size of the object in version 5.0, in words */
    const ibp_handle *component = ibp_mpi_symbol("ompi_part_persist");

    for (unsigned i = 0; component && i < SEARCHED; i++)
        if (component[i] == communicator) return true;
    return false;
}

/* Return whether the current call creates a partitioned request. During this call, both processes exchange the number
 * and the positions of the partitions. */
static bool sets_partitions_up(void)
{
    return (ibp_current_call.operation == IBP_OPERATION_Psend_init ||
            ibp_current_call.operation == IBP_OPERATION_Precv_init) &&
           !ibp_current_call.starts_request;
}

static void examine(struct ibp_communicator *communicator)
{
    communicator->is_examined = true;
    communicator->carries_partitions = is_of_partitions(communicator->handle);
    if (!communicator->carries_partitions && !communicator->carries_windows) ibp_context_make(communicator);
}

static uint32_t world_rank(ibp_handle communicator, int rank)
{
    uint32_t peer = (uint32_t)rank;

    if (communicator == ibp_mpi.world) return peer;
    ibp_lock();
    peer = ibp_communicator_peer(ibp_communicator_find(communicator), rank);
    ibp_unlock();
    return peer;
}

struct ibp_openmpi_message ibp_openmpi_classify(ibp_handle handle, int rank, int tag, unsigned otherwise)
{
    const bool counted = ibp_openmpi_tag_is_counted(tag);
    struct ibp_openmpi_message message = {.kind = IBP_KIND_USER, .peer = (uint32_t)rank};
    struct ibp_communicator *communicator;

    if (sets_partitions_up()) {
        message.kind = IBP_KIND_CONTROL;
        message.peer = world_rank(handle, rank);
        message.operation = ibp_openmpi_starting_operation(ibp_current_call.operation);
        return message;
    }
    /* MPI_COMM_WORLD needs a context only while several threads are in MPI. */
    if (handle == ibp_mpi.world && !counted && !ibp_threads_multiple) {
        message.operation = untagged_operation(tag, otherwise);
        return message;
    }
    ibp_lock();
    communicator = ibp_communicator_find(handle);
    message.peer = ibp_communicator_peer(communicator, rank);
    if (communicator && !communicator->is_examined) examine(communicator);
    if (communicator && communicator->carries_partitions) {
        ibp_unlock();
        message.kind = IBP_KIND_CONTROL;
        message.operation = ibp_openmpi_starting_operation(IBP_OPERATION_Psend_init);
        return message;
    }
    if (communicator && communicator->carries_windows) {
        message.kind = IBP_KIND_CONTROL;
        otherwise = IBP_OPERATION_UNATTRIBUTED;
    }
    if (communicator && counted) message.call = ibp_call_by_number(ibp_openmpi_tagged_call(communicator, tag));
    if (message.call && message.call->operation == IBP_OPERATION_Psend_init) message.kind = IBP_KIND_CONTROL;
    message.operation = message.call ? message.call->operation : untagged_operation(tag, otherwise);
    ibp_unlock();
    return message;
}
