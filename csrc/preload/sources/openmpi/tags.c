/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/tags.h"
#include "counting/context.h"
#include "counting/count.h"
#include "counting/current_call.h"
#include "libmpi/lock.h"
#include "platform/log.h"

/* Internal tags of Open MPI are negative. Blocking collectives and neighbourhood collectives have fixed tags. The fixed
 * tags of neighbourhood collectives are below all counted tags (coll_tags.h of 4.1 and 5.0). Open MPI allocates a
 * counted tag for each call whose messages may be sent after its return. Each further counted tag is lower by 1. */
#define FIRST_COUNTED_TAG_OF_4 (-27)
int ibp_openmpi_first_counted_tag;

/* Offset of the next tag in a communicator object (c_nbc_tag); 0 if it was not found. */
static size_t next_tag_offset;

static int next_tag(ibp_handle communicator)
{
    return *(volatile int *)((char *)communicator + next_tag_offset);
}

/* Before the call: remember the next tag as the tag of the call, because Open MPI sends some messages inside the
 * call. */
void ibp_openmpi_before_tag(void)
{
    struct ibp_communicator *communicator;

    if (!next_tag_offset || !ibp_current_communicator()) return;
    ibp_lock();
    communicator = ibp_communicator_find(ibp_current_communicator());
    if (communicator) {
        ibp_current_call.tag = next_tag(ibp_current_communicator());
        if (ibp_current_call.kind == IBP_CALL_DUPLICATING) communicator->is_duplicated = true;
        ibp_tag_remember(communicator, ibp_current_call.tag, ibp_current_call_number());
    }
    ibp_unlock();
}

/* After the call: forget the tag if Open MPI did not allocate it, and remember all further allocated tags. */
void ibp_openmpi_after_tag(int error)
{
    struct ibp_communicator *communicator;
    int after;

    if (!ibp_current_call.tag) return;
    ibp_lock();
    communicator = ibp_communicator_find(ibp_current_communicator());
    after = error ? ibp_current_call.tag : next_tag(ibp_current_communicator());
    if (communicator && after == ibp_current_call.tag) ibp_tag_remember(communicator, after, IBP_OPERATION_NONE);
    for (int tag = ibp_current_call.tag - 1; communicator && tag > after; tag--)
        ibp_tag_remember(communicator, tag, ibp_current_call_number());
    ibp_unlock();
}

/* Nonblocking collectives on an intercommunicator also send messages within each group. Messages within a group have
 * tags of the intercommunicator, but use the local communicator of the group. Only the intercommunicator contains the
 * handle of this communicator (c_local_comm). Find the intercommunicator of a local communicator, and return the call
 * with the tag on the intercommunicator. */
static unsigned call_of_both_groups(ibp_handle local, int tag)
{
    enum { SEARCHED = 40 }; /* the object has 44 words in 4.1, 48 in 5.0; c_local_comm is word 33 or 35 */
    const struct ibp_communicator *known;

    for (size_t place = 0; (known = ibp_communicator_at(&place)); place++) {
        const ibp_handle *words = (const ibp_handle *)known->handle;

        if (!known->is_between || ibp_tag_call(known, tag) == IBP_OPERATION_NONE) continue;
        for (unsigned i = 0; i < SEARCHED; i++)
            if (words[i] == local) return ibp_tag_call(known, tag);
    }
    return IBP_OPERATION_NONE;
}

/* Return whether Open MPI allocated a tag so recently that the tag may belong to a blocking collective. An older tag
 * may belong to a persistent collective that ibprof no longer remembers. */
static bool may_be_of_blocking(ibp_handle communicator, int tag)
{
    const int next = next_tag_offset ? next_tag(communicator) : tag;

    return tag > next && tag - next < IBP_TAGS_REMEMBERED / 2;
}

unsigned ibp_openmpi_tagged_call(struct ibp_communicator *communicator, int tag)
{
    unsigned call = ibp_tag_call(communicator, tag), operation;

    if (call == IBP_OPERATION_NONE) call = call_of_both_groups(communicator->handle, tag);
    if (call != IBP_OPERATION_NONE) return call;
    /* ibprof knows no call of the application with this tag. First possible cause: the program starts a persistent
     * collective that was created long ago. Second cause: MPI_Comm_idup duplicates a communicator. Third cause: Open
     * MPI uses nonblocking collectives inside a call, on the call's communicator (as in coll/adapt) or on another
     * communicator. If `is_behind_layer` is set, the communicator of the call is unknown, so communicators are not
     * compared. */
    if (ibp_current_call.starts_request && ibp_current_call.operation)
        operation = ibp_current_call.operation;
    else if (communicator->is_duplicated)
        operation = IBP_OPERATION_Comm_idup;
    else if (ibp_current_call.operation &&
             !(ibp_current_call.kind == IBP_CALL_COLLECTIVE &&
               (ibp_mpi.is_behind_layer || (ibp_current_communicator() == communicator->handle &&
                                            !may_be_of_blocking(communicator->handle, tag)))))
        operation = ibp_current_call.operation;
    else if (ibp_counts_arguments && communicator->handle == ibp_mpi.world && ibp_mpi_symbol("ompi_part_persist"))
        operation = IBP_OPERATION_Psend_init; /* Open MPI duplicates MPI_COMM_WORLD for partitioned messages */
    else
        operation = IBP_OPERATION_UNATTRIBUTED;
    call =
        operation == ibp_current_call.operation ? ibp_current_call_number() : ibp_openmpi_starting_operation(operation);
    ibp_tag_remember(communicator, tag, call);
    return call;
}

/* Each of two nonblocking barriers on MPI_COMM_SELF decreases the next tag by 1. No other number in the object
 * decreases by 1 at each barrier. The barriers send no messages. */
bool ibp_openmpi_tags_probe(void)
{
    enum { SEARCHED = 128, BARRIERS = 2 };
    const volatile int *self = (const volatile int *)ibp_mpi.self;
    int seen[BARRIERS + 1][SEARCHED], found = 0;

    ibp_openmpi_first_counted_tag = FIRST_COUNTED_TAG_OF_4;
    next_tag_offset = 0;
    for (int round = 0; round <= BARRIERS; round++) {
        void *request = NULL;

        for (int i = 0; i < SEARCHED; i++) seen[round][i] = self[i];
        if (round < BARRIERS && (ibp_mpi.ibarrier(ibp_mpi.self, &request) || ibp_mpi.wait(&request, NULL)))
            return false;
    }
    for (int i = 0; i < SEARCHED; i++)
        if (seen[0][i] <= FIRST_COUNTED_TAG_OF_4 && seen[0][i] > IBP_OPENMPI_LOWEST_COUNTED_TAG &&
            seen[1][i] == seen[0][i] - 1 && seen[2][i] == seen[0][i] - 2) {
            next_tag_offset = (size_t)i * sizeof(int);
            ibp_openmpi_first_counted_tag = seen[0][i];
            found++;
        }
    if (found != 1) {
        next_tag_offset = 0;
        ibp_openmpi_first_counted_tag = FIRST_COUNTED_TAG_OF_4;
    }
    ibp_lowest_tag_within = ibp_openmpi_first_counted_tag + 1;
    ibp_log(2, "the tags of nonblocking collectives begin at %d; a communicator has its next tag at offset %zu",
            ibp_openmpi_first_counted_tag, next_tag_offset);
    return next_tag_offset != 0;
}
