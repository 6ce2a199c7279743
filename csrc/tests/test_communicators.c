/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Communicators of a mock MPI with 1,000 ranks. A communicator with handle h has the ranks 0 to (h >> 1) - 1, in
 * reverse order if h is odd. Negative handles are intercommunicators with ranks of another job.
 */
#include "check.h"
#include "libmpi/communicators.h"
#include "recording/operations.h"

#include "ibprof_recording.h"

#include <sys/resource.h>

#define WORLD_RANKS 1000
#define WORLD ((ibp_handle)(WORLD_RANKS << 1))

static int asked;

static int comm_group(ibp_handle handle, ibp_handle *group)
{
    asked++;
    *group = handle;
    return 0;
}

static int comm_test_inter(ibp_handle handle, int *between)
{
    *between = handle < 0;
    return 0;
}

static int group_size(ibp_handle group, int *size)
{
    *size = (int)((group < 0 ? -group : group) >> 1);
    return 0;
}

static int group_free(ibp_handle *group)
{
    *group = 0;
    return 0;
}

static int group_translate_ranks(ibp_handle from, int ranks, const int *list, ibp_handle into, int *translated)
{
    int size = 0;

    CHECK(into == WORLD);
    group_size(from, &size);
    for (int i = 0; i < ranks; i++) translated[i] = from < 0 ? -32766 : from & 1 ? size - 1 - list[i] : list[i];
    return 0;
}

static void peers_are_world_ranks(void)
{
    CHECK(ibp_communicator_peer(ibp_communicator_find(8 << 1), 3) == 3);
    CHECK(ibp_communicator_peer(ibp_communicator_find(8 << 1 | 1), 3) == 4);
    CHECK(ibp_communicator_peer(ibp_communicator_find(8 << 1), 8) == IBP_PEER_UNKNOWN);
    CHECK(ibp_communicator_peer(ibp_communicator_find(8 << 1), -1) == IBP_PEER_UNKNOWN);
    CHECK(ibp_communicator_peer(ibp_communicator_find(-(8 << 1)), 3) == IBP_PEER_UNKNOWN);
    CHECK(ibp_communicator_peer(NULL, 0) == IBP_PEER_UNKNOWN);
}

static void each_is_asked_about_once_until_it_is_freed(void)
{
    const ibp_handle handle = 500 << 1;

    ibp_communicator_find(handle);
    asked = 0;
    ibp_communicator_find(handle);
    CHECK(asked == 0);
    ibp_communicator_forget(handle);
    ibp_communicator_find(handle);
    CHECK(asked > 0);
}

static void thousands_come_and_go(void)
{
    for (int round = 0; round < 20; round++) {
        for (ibp_handle size = 1; size <= 900; size++)
            CHECK(ibp_communicator_peer(ibp_communicator_find(size << 1 | 1), 0) == (uint32_t)size - 1);
        for (ibp_handle size = 1; size <= 900; size++) ibp_communicator_forget(size << 1 | 1);
    }
}

static long count_page_faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* Programs duplicate communicators often. */
static void duplicates_come_and_go_without_new_memory(void)
{
    const ibp_handle handle = 100 << 1;
    const int rounds = 10000;
    long faults = count_page_faults();

    for (int round = 0; round < rounds; round++) {
        ibp_communicator_learn(handle);
        CHECK(ibp_communicator_peer(ibp_communicator_known(handle), 99) == 99);
        ibp_communicator_forget(handle);
    }
    faults = count_page_faults() - faults;
    CHECK(faults < rounds);
}

static void a_window_s_communicator_is_known_before_it_is_complete(void)
{
    const ibp_handle handle = 77 << 1;

    asked = 0;
    ibp_communicator_note_carrier(handle);
    CHECK(asked == 0);
    CHECK(ibp_communicator_find(handle)->carries_windows && ibp_communicator_find(handle)->size == 77);
    ibp_communicator_forget(handle);
    CHECK(!ibp_communicator_find(handle)->carries_windows);
}

static void tags_are_remembered(void)
{
    struct ibp_communicator *communicator = ibp_communicator_find(WORLD);

    CHECK(ibp_tag_call(communicator, -27) == IBP_OPERATION_NONE);
    ibp_tag_remember(communicator, -27, IBP_OPERATION_Ibcast);
    ibp_tag_remember(communicator, -28, IBP_OPERATION_Iscan);
    ibp_tag_remember(communicator, -28, IBP_OPERATION_NONE); /* forgotten */
    CHECK(ibp_tag_call(communicator, -27) == IBP_OPERATION_Ibcast);
    CHECK(ibp_tag_call(communicator, -28) == IBP_OPERATION_NONE);

    /* IBP_TAGS_REMEMBERED tags are remembered; an older tag is unknown */
    for (int tag = -28; tag > -28 - IBP_TAGS_REMEMBERED; tag--)
        ibp_tag_remember(communicator, tag, IBP_OPERATION_Ialltoall);
    CHECK(ibp_tag_call(communicator, -28) == IBP_OPERATION_Ialltoall);
    CHECK(ibp_tag_call(communicator, -27) == IBP_OPERATION_NONE);
}

int main(void)
{
    ibp_mpi.world = WORLD;
    ibp_mpi.size = WORLD_RANKS;
    ibp_mpi.comm_group = comm_group;
    ibp_mpi.comm_remote_group = comm_group;
    ibp_mpi.comm_test_inter = comm_test_inter;
    ibp_mpi.group_size = group_size;
    ibp_mpi.group_free = group_free;
    ibp_mpi.group_translate_ranks = group_translate_ranks;

    peers_are_world_ranks();
    each_is_asked_about_once_until_it_is_freed();
    thousands_come_and_go();
    duplicates_come_and_go_without_new_memory();
    a_window_s_communicator_is_known_before_it_is_complete();
    tags_are_remembered();
    return 0;
}
