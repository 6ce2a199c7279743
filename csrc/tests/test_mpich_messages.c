/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * MPICH's messages by context and tag, without an MPI. Tested: the operation of each counted message, and the rejection
 * of a source that sees an unsent message.
 */
#include "counting/requests.h"
#include "libmpi/communicators.h"
#include "libmpi/handles.h"
#include "mpich_fixture.h"
#include "recording/process_state.h"
#include "sources/mpich/counted_tags.h"
#include "sources/mpich/messages.h"
#include "sources/source.h"

#include <string.h>

static bool detached;

static void detach(void)
{
    detached = true;
}

static void describe(char *notes, size_t bytes)
{
    ibp_mpich_describe_gaps(notes, bytes);
}

static const struct ibp_source_operations source = {.detach = detach, .describe_gaps = describe};

static void send_message(uint32_t context, uint32_t tag, uint64_t bytes)
{
    ibp_mpich_count((struct ibp_mpich_envelope){.context = context, .tag = tag}, some_peer, bytes);
}

static uint64_t bytes_of(unsigned operation, enum ibp_kind kind)
{
    return counted_bytes(operation, kind, IBP_DIRECTION_SENT);
}
#define CHECK_BYTES(operation, bytes) CHECK(bytes_of(IBP_OPERATION_##operation, IBP_KIND_USER) == (bytes))

static void blocking_calls_are_what_they_say(void)
{
    enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
    send_message(POINT_TO_POINT, 5, 1);
    ibp_leave();
    enter_call(IBP_OPERATION_Bcast, IBP_CALL_COLLECTIVE, WORLD);
    send_message(COLLECTIVE, 2, 10);
    ibp_leave();
    send_message(POINT_TO_POINT, 5, 100); /* outside of any call */
    CHECK_BYTES(Send, 1);
    CHECK_BYTES(Bcast, 10);
    CHECK_BYTES(UNATTRIBUTED, 100);
}

static void rounds_belong_to_what_started_them(void)
{
    /* Two nonblocking calls on two communicators. MPI sends the messages of both calls during a later call. Both calls
     * have the same tag. */
    enter_call(IBP_OPERATION_Ibcast, IBP_CALL_NONBLOCKING, WORLD);
    ibp_mpich_before_tag();
    send_message(COLLECTIVE, 287, 1);
    ibp_leave();
    enter_call(IBP_OPERATION_Ialltoall, IBP_CALL_NONBLOCKING, OTHER);
    ibp_mpich_before_tag();
    send_message(OF_OTHER, 287, 10);
    ibp_leave();
    enter_call(IBP_OPERATION_Barrier, IBP_CALL_COLLECTIVE, WORLD);
    send_message(COLLECTIVE, 287, 100);
    send_message(OF_OTHER, 287, 1000);
    send_message(COLLECTIVE, 1, 10000);
    ibp_leave();
    CHECK_BYTES(Ibcast, 101);
    CHECK_BYTES(Ialltoall, 1010);
    CHECK_BYTES(Barrier, 10000);
}

static void counted_tags_may_begin_elsewhere(void)
{
    enter_call(IBP_OPERATION_Ibcast, IBP_CALL_NONBLOCKING, WORLD);
    ibp_mpich_before_tag();
    send_message(COLLECTIVE, 300, 1); /* not 287 */
    ibp_leave();
    enter_call(IBP_OPERATION_Igather, IBP_CALL_NONBLOCKING, WORLD);
    ibp_mpich_before_tag();
    ibp_leave();
    send_message(COLLECTIVE, 301, 10);
    send_message(COLLECTIVE, 300, 100);
    CHECK_BYTES(Ibcast, 101);
    CHECK_BYTES(Igather, 10);
}

static void start_call(unsigned operation, bool moves_nothing)
{
    enter_call(operation, IBP_CALL_NONBLOCKING, WORLD);
    ibp_current_call.moves_nothing = moves_nothing;
    ibp_mpich_before_tag();
}

static void calls_of_no_items_may_take_no_tag(void)
{
    snprintf(ibp_mpi.version, sizeof ibp_mpi.version, "MPICH Version:      4.0.2");
    start_call(IBP_OPERATION_Igather, true);
    ibp_leave();
    start_call(IBP_OPERATION_Ibcast, true); /* MPICH 4.0 allocates a tag */
    ibp_leave();
    start_call(IBP_OPERATION_Iallreduce, true); /* every MPICH allocates a tag */
    ibp_leave();
    start_call(IBP_OPERATION_Ialltoall, false);
    ibp_leave();
    send_message(COLLECTIVE, 289, 1);
    snprintf(ibp_mpi.version, sizeof ibp_mpi.version, "MPICH Version:      4.3.2");
    start_call(IBP_OPERATION_Ibcast, true);
    ibp_leave();
    start_call(IBP_OPERATION_Iscan, false);
    ibp_leave();
    send_message(COLLECTIVE, 290, 10);
    snprintf(ibp_mpi.version, sizeof ibp_mpi.version, "MPICH Version:      3.4.3");
    start_call(IBP_OPERATION_Igather, true);
    ibp_leave();
    start_call(IBP_OPERATION_Iscatter, false);
    ibp_leave();
    send_message(COLLECTIVE, 292, 100);
    CHECK_BYTES(Ialltoall, 1);
    CHECK_BYTES(Iscan, 10);
    CHECK_BYTES(Iscatter, 100);
    CHECK(!ibp_mpich_counted_wrongly());
    /* A later version of MPICH may use a tag again; messages then show the tag. */
    snprintf(ibp_mpi.version, sizeof ibp_mpi.version, "MPICH Version:      9.0");
    start_call(IBP_OPERATION_Igather, true);
    send_message(COLLECTIVE, 293, 0);
    ibp_leave();
    start_call(IBP_OPERATION_Ireduce, true);
    ibp_leave();
    start_call(IBP_OPERATION_Iexscan, false);
    send_message(COLLECTIVE, 295, 1000);
    ibp_leave();
    send_message(COLLECTIVE, 295, 1000);
    CHECK_BYTES(Iexscan, 2000);
    CHECK(ibp_mpich_counted_wrongly());
}

static void between_groups_a_broadcast_of_no_items_takes_no_tag(void)
{
    snprintf(ibp_mpi.version, sizeof ibp_mpi.version, "MPICH Version:      5.0.2");
    ibp_communicator_learn(WORLD);
    ibp_communicator_enter(WORLD)->is_between = true;
    start_call(IBP_OPERATION_Ibcast, true);
    ibp_leave();
    start_call(IBP_OPERATION_Igather, true); /* allocates a tag */
    ibp_leave();
    start_call(IBP_OPERATION_Iscatter, false);
    ibp_leave();
    send_message(COLLECTIVE, 287, 1);
    send_message(COLLECTIVE, 288, 10);
    CHECK_BYTES(Igather, 1);
    CHECK_BYTES(Iscatter, 10);
    CHECK(!ibp_mpich_counted_wrongly());
}

static void calls_that_make_communicators_may_take_tags(void)
{
    enter_call(IBP_OPERATION_Comm_split, IBP_CALL_MAKING, WORLD);
    send_message(COLLECTIVE, 287, 1); /* MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=nb */
    ibp_leave();
    start_call(IBP_OPERATION_Ibarrier, false);
    send_message(COLLECTIVE, 288, 10);
    ibp_leave();
    start_call(IBP_OPERATION_Ialltoall, false);
    ibp_leave();
    enter_call(IBP_OPERATION_Ibcast, IBP_CALL_NONBLOCKING, OTHER); /* a new communicator, whose tags begin again */
    ibp_mpich_before_tag();
    send_message(OF_OTHER, 287, 100);
    ibp_leave();
    enter_call(IBP_OPERATION_Igather, IBP_CALL_NONBLOCKING, OTHER);
    ibp_mpich_before_tag();
    ibp_leave();
    send_message(COLLECTIVE, 289, 1000);
    send_message(OF_OTHER, 288, 10000);
    CHECK_BYTES(Comm_split, 1);
    CHECK_BYTES(Ibarrier, 10);
    CHECK_BYTES(Ialltoall, 1000);
    CHECK_BYTES(Ibcast, 100);
    CHECK_BYTES(Igather, 10000);
    CHECK(!ibp_mpich_counted_wrongly());
}

static void a_tag_of_one_communicator_moves_no_other_in_intel_mpi(void)
{
    snprintf(ibp_mpi.version, sizeof ibp_mpi.version, "Intel(R) MPI Library 2021.18");
    start_call(IBP_OPERATION_Ibcast, false);
    send_message(COLLECTIVE, 288, 1); /* MPI_Comm_dup took 287 */
    ibp_leave();
    enter_call(IBP_OPERATION_Iscan, IBP_CALL_NONBLOCKING, OTHER);
    ibp_mpich_before_tag();
    send_message(OF_OTHER, 287, 10);
    ibp_leave();
    enter_call(IBP_OPERATION_Igather, IBP_CALL_NONBLOCKING, OTHER);
    ibp_mpich_before_tag();
    ibp_leave();
    send_message(OF_OTHER, 288, 100);
    CHECK_BYTES(Ibcast, 1);
    CHECK_BYTES(Iscan, 10);
    CHECK_BYTES(Igather, 100);
    CHECK(!ibp_mpich_counted_wrongly());
}

static void making_an_object_takes_a_tag_of_its_parent_in_intel_mpi(void)
{
    snprintf(ibp_mpi.version, sizeof ibp_mpi.version, "Intel(R) MPI Library 2021.18");
    start_call(IBP_OPERATION_Iscan, false);
    ibp_leave();
    ibp_mpich_made_object(WORLD);
    start_call(IBP_OPERATION_Ialltoall, false);
    ibp_leave();
    ibp_communicator_learn(OTHER);
    ibp_communicator_enter(OTHER)->is_between = true; /* MPI allocates tags of its calls on another communicator */
    ibp_mpich_made_object(OTHER);
    enter_call(IBP_OPERATION_Igather, IBP_CALL_NONBLOCKING, OTHER);
    ibp_mpich_before_tag();
    ibp_leave();
    enter_call(IBP_OPERATION_Ireduce, IBP_CALL_NONBLOCKING, OTHER);
    ibp_mpich_before_tag();
    send_message(OF_OTHER, 288, 10);
    ibp_leave();
    send_message(COLLECTIVE, 287, 100);
    send_message(COLLECTIVE, 289, 1000);
    CHECK_BYTES(Ireduce, 10);
    CHECK_BYTES(Iscan, 100);
    CHECK_BYTES(Ialltoall, 1000);
    CHECK(!ibp_mpich_counted_wrongly());
}

static void collectives_go_on_while_communicators_are_made(void)
{
    start_call(IBP_OPERATION_Ialltoall, false);
    ibp_leave();
    enter_call(IBP_OPERATION_Intercomm_create, IBP_CALL_MAKING, OTHER);
    send_message(COLLECTIVE, 0xa0000007, 1); /* a tag that MPI computes from the arguments */
    ibp_leave();
    enter_call(IBP_OPERATION_Comm_dup, IBP_CALL_MAKING, WORLD);
    send_message(COLLECTIVE, 287, 10); /* MPI_Ialltoall started first, so its tag is 287 */
    send_message(COLLECTIVE, 14, 100);
    ibp_leave();
    CHECK_BYTES(Intercomm_create, 1);
    CHECK_BYTES(Ialltoall, 10);
    CHECK_BYTES(Comm_dup, 100);
}

static void a_call_with_wrong_arguments_takes_no_tag(void)
{
    start_call(IBP_OPERATION_Ibcast, false);
    ibp_mpich_after_tag(7 | 0x4000000); /* MPI_ERR_ROOT */
    ibp_leave();
    start_call(IBP_OPERATION_Iscan, false);
    ibp_mpich_after_tag(0);
    ibp_leave();
    start_call(IBP_OPERATION_Iallreduce, false);
    ibp_mpich_after_tag(15 | 0x4000000); /* MPI_ERR_OTHER: the call allocated its tag */
    ibp_leave();
    start_call(IBP_OPERATION_Igather, false);
    ibp_mpich_after_tag(0);
    ibp_leave();
    send_message(COLLECTIVE, 287, 1);
    send_message(COLLECTIVE, 289, 10);
    CHECK_BYTES(Iscan, 1);
    CHECK_BYTES(Igather, 10);
}

static void in_mpich_it_takes_none(void)
{
    snprintf(ibp_mpi.version, sizeof ibp_mpi.version, "MPICH Version:      5.0.2");
    ibp_mpich_made_object(WORLD);
    start_call(IBP_OPERATION_Iscan, false);
    ibp_leave();
    start_call(IBP_OPERATION_Ialltoall, false);
    ibp_leave();
    send_message(COLLECTIVE, 287, 1);
    CHECK_BYTES(Iscan, 1);
}

static void duplicates_are_committed_in_any_call(void)
{
    enum { NEW = 0x31, NEWER = 0x41 };

    enter_call(IBP_OPERATION_Bcast, IBP_CALL_COLLECTIVE, WORLD);
    send_message(COLLECTIVE, 2, 1);
    ibp_leave();
    send_message(NEW, 2, 100000); /* a message of an unknown operation */
    enter_call(IBP_OPERATION_Comm_idup, IBP_CALL_DUPLICATING, WORLD);
    ibp_mpich_before_tag();
    ibp_leave();
    send_message(NEW, 2, 10);
    enter_call(IBP_OPERATION_Bcast, IBP_CALL_COLLECTIVE, WORLD);
    send_message(COLLECTIVE, 2, 100);
    send_message(NEWER, 2, 1000);
    ibp_leave();
    enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
    send_message(POINT_TO_POINT, 5, 10000);
    send_message(NEWER, 2, 2000);
    ibp_leave();
    enter_call(IBP_OPERATION_Bcast, IBP_CALL_COLLECTIVE, OTHER); /* the new communicator's own message */
    send_message(NEW, 2, 200);
    ibp_leave();
    CHECK_BYTES(Bcast, 301);
    CHECK_BYTES(Comm_idup, 3010);
    CHECK_BYTES(Send, 10000);
    CHECK_BYTES(UNATTRIBUTED, 100000);
}

static void duplicates_may_begin_after_their_call(void)
{
    enter_call(IBP_OPERATION_Comm_idup, IBP_CALL_DUPLICATING, WORLD);
    ibp_mpich_before_tag();
    ibp_leave();
    send_message(COLLECTIVE, 287, 1); /* the first message of the communicator */
    send_message(COLLECTIVE, 288, 10);
    CHECK_BYTES(Comm_idup, 11);
}

static void the_librarys_own_is_control(void)
{
    const struct ibp_mpich_envelope answer = {.context = POINT_TO_POINT, .tag = 1, .is_control = true};

    ibp_mpich_count(answer, some_peer, 0);
    enter_call(IBP_OPERATION_Put, IBP_CALL_BLOCKING, 0);
    ibp_mpich_count_active_message(some_peer, 40);
    ibp_leave();
    ibp_mpich_count_active_message(some_peer, 5);
    CHECK(bytes_of(IBP_OPERATION_Put, IBP_KIND_CONTROL) == 40);
    CHECK(bytes_of(IBP_OPERATION_UNATTRIBUTED, IBP_KIND_CONTROL) == 5);
    CHECK(bytes_of(IBP_OPERATION_UNATTRIBUTED, IBP_KIND_USER) == 0);
}

static void partitioned_sends_count_when_they_start(void)
{
    void *request = (void *)0x98000001;
    int requests[1] = {(int)0x98000001};

    request = ibp_mpi_request((void **)requests, 0);
    ibp_request_keep_call(request, &ibp_calls[IBP_OPERATION_Psend_init], 0, (struct ibp_demanded){0}, false);
    CHECK(ibp_request_call(request) == &ibp_calls[IBP_OPERATION_Psend_init]);
    ibp_request_freed(request);
    CHECK(ibp_request_call(request) == &ibp_calls[IBP_OPERATION_NONE]);
}

/* Call MPI_Send with `items` bytes and tag `tag`. The source sees a message with `seen_bytes` and `seen_tag`. */
static void send_call(uint64_t items, uint32_t tag, uint64_t seen_bytes, uint32_t seen_tag)
{
    enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
    if (ibp_source_unproved) ibp_mpich_expect(items, 0x4c00010d, 1, (int)tag);
    if (ibp_is_active()) send_message(POINT_TO_POINT, seen_tag, seen_bytes);
    ibp_leave();
}

static void the_first_message_is_proof(void)
{
    ibp_source_unproved = true;
    enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
    ibp_mpich_expect(100, 0x4c00010d, 1, 7); /* the message is sent later */
    ibp_leave();
    for (int i = 0; i < 20; i++) {
        enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
        ibp_mpich_expect(100000, 0x4c00010d, 1, 7); /* too long to verify the source */
        send_message(POINT_TO_POINT, 7, 50000);
        ibp_leave();
    }
    for (int i = 0; i < 3; i++) send_call(100, 0, 100, 0);
    CHECK(ibp_source_unproved);
    send_call(100, 8, 100, 8);
    CHECK(!ibp_source_unproved && !detached);
}

static void messages_of_other_calls_are_no_failures(void)
{
    ibp_source_unproved = true;
    for (int i = 0; i < 20; i++) {
        enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD); /* unseen: the message stays on the host */
        ibp_mpich_expect(100, 0x4c00010d, 1, 7);
        if (i % 2) ibp_mpich_count_active_message(some_peer, 5000); /* sent for another rank's request */
        ibp_leave();
        enter_call(IBP_OPERATION_Intercomm_create, IBP_CALL_MAKING, WORLD);
        send_message(POINT_TO_POINT, 5000, 4);
        ibp_leave();
        send_message(POINT_TO_POINT, 9, 100);
    }
    CHECK(ibp_source_unproved && !detached);
    send_call(100, 7, 100, 7);
    CHECK(!ibp_source_unproved && !detached);
}

static void collectives_go_on_in_sends(void)
{
    ibp_source_unproved = true;
    start_call(IBP_OPERATION_Iallreduce, true);
    ibp_leave();
    for (int i = 0; i < 20; i++) {
        enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
        ibp_mpich_expect(100, 0x4c00010d, 1, 7);
        send_message(COLLECTIVE, 287, 100);
        ibp_leave();
    }
    CHECK(ibp_source_unproved && !detached);
    CHECK_BYTES(Iallreduce, 2000);
}

static void active_messages_of_sends_are_failures(void)
{
    ibp_source_unproved = true;
    for (int i = 0; i < 5; i++) {
        enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
        if (ibp_source_unproved) ibp_mpich_expect(100, 0x4c00010d, 1, 7);
        ibp_mpich_count_active_message(some_peer, 164);
        ibp_leave();
    }
    CHECK(detached);
}

static void tags_of_nothing_take_several(void)
{
    ibp_source_unproved = true;
    for (int i = 0; i < 3; i++) send_call(100, 0, 100, 0);
    CHECK(ibp_source_unproved);
    send_call(100, 0, 100, 0);
    CHECK(!ibp_source_unproved && !detached);
}

static void a_wrong_guess_is_taken_back(void)
{
    ibp_source_unproved = true;
    for (int i = 0; i < 4; i++) send_call(100, 8, 100, 4); /* as if MPI stored the tag in other bits */
    CHECK(!detached);
    CHECK_BYTES(Send, 400);
    send_call(100, 8, 100, 4);
    CHECK(detached && !ibp_source_unproved);
    CHECK(reader_process()->source == IBP_SOURCE_NONE);
    CHECK(strstr(reader_process()->notes,
                 "messages between ranks were not seen: 4 messages differed from the sent messages"));
}

static void run(void (*test)(void))
{
    run_recorded(test, &source);
}

int main(void)
{
    run(blocking_calls_are_what_they_say);
    run(rounds_belong_to_what_started_them);
    run(counted_tags_may_begin_elsewhere);
    run(calls_of_no_items_may_take_no_tag);
    run(between_groups_a_broadcast_of_no_items_takes_no_tag);
    run(calls_that_make_communicators_may_take_tags);
    run(a_tag_of_one_communicator_moves_no_other_in_intel_mpi);
    run(making_an_object_takes_a_tag_of_its_parent_in_intel_mpi);
    run(in_mpich_it_takes_none);
    run(a_call_with_wrong_arguments_takes_no_tag);
    run(collectives_go_on_while_communicators_are_made);
    run(duplicates_are_committed_in_any_call);
    run(duplicates_may_begin_after_their_call);
    run(the_librarys_own_is_control);
    run(partitioned_sends_count_when_they_start);
    run(the_first_message_is_proof);
    run(messages_of_other_calls_are_no_failures);
    run(collectives_go_on_in_sends);
    run(active_messages_of_sends_are_failures);
    run(tags_of_nothing_take_several);
    run(a_wrong_guess_is_taken_back);
    return 0;
}
