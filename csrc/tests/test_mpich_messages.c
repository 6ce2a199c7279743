/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * MPICH's messages by context and tag, without an MPI: the operation under which each is counted, and the rejection of
 * a source that sees something else than was sent.
 */
#include "check.h"
#include "counting/addresses.h"
#include "counting/current_call.h"
#include "counting/process.h"
#include "counting/requests.h"
#include "libmpi/handles.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "recording_reader.h"
#include "sources/mpich/messages.h"
#include "sources/source.h"

#include "ibprof_recording.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORLD = 0x44000000, OTHER = 0x84000001, POINT_TO_POINT = 0x10, COLLECTIVE = 0x11, OF_OTHER = 0x21 };

static uint32_t peer;
static bool detached;

static int type_size(ibp_handle datatype, int64_t *size)
{
    *size = datatype == 0x4c00010d ? 1 : 8;
    return 0;
}

static void detach(void)
{
    detached = true;
}

static void describe(char *notes, size_t bytes)
{
    ibp_mpich_describe_gaps(notes, bytes);
}

static const struct ibp_source_operations source = {.detach = detach, .describe_gaps = describe};

static void start(void)
{
    const char *folder = make_test_folder();
    const uint64_t address = 22;
    char output[300], unknown[64];

    snprintf(output, sizeof output, "%s/recording", folder);
    setenv("IBPROF_OUTPUT", output, 1);
    ibp_operations_select("", unknown, sizeof unknown);
    ibp_mpi.abi = IBP_ABI_MPICH;
    ibp_mpi.world = WORLD;
    ibp_mpi.type_size = type_size;
    CHECK(ibp_process_open());
    reader_open(output);
    ibp_addresses_record();
    peer = ibp_address_of_peer(&address, sizeof address);
    ibp_source = &source;
    ibp_process_state->active = true;
    ibp_labels_sends = true;
}

static void enter(unsigned operation, enum ibp_call_kind kind, ibp_handle communicator)
{
    ibp_enter((struct ibp_current_call){
        .operation = (uint16_t)operation, .kind = (uint8_t)kind, .communicator = communicator});
}

static void send_message(uint32_t context, uint32_t tag, uint64_t bytes)
{
    ibp_mpich_count((struct ibp_mpich_envelope){.context = context, .tag = tag}, peer, bytes);
}

static uint64_t bytes_of(unsigned operation, enum ibp_kind kind)
{
    uint64_t bytes = 0;

    for (int i = 0; i < reader_count(IBP_SEGMENT_COUNTERS); i++) {
        const struct ibp_counter *counter = reader_record(IBP_SEGMENT_COUNTERS, i);

        if (counter->operation == operation && counter->kind == kind) bytes += counter->bytes;
    }
    return bytes;
}
#define CHECK_BYTES(operation, bytes) CHECK(bytes_of(IBP_OPERATION_##operation, IBP_KIND_USER) == (bytes))

static void blocking_calls_are_what_they_say(void)
{
    enter(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
    send_message(POINT_TO_POINT, 5, 1);
    ibp_leave();
    enter(IBP_OPERATION_Bcast, IBP_CALL_COLLECTIVE, WORLD);
    send_message(COLLECTIVE, 2, 10);
    ibp_leave();
    send_message(POINT_TO_POINT, 5, 100); /* outside of any call */
    CHECK_BYTES(Send, 1);
    CHECK_BYTES(Bcast, 10);
    CHECK_BYTES(UNATTRIBUTED, 100);
}

static void rounds_belong_to_what_started_them(void)
{
    /* Two nonblocking calls on two communicators. All messages leave in a later call, those of the second under a
     * tag of the same number. */
    enter(IBP_OPERATION_Ibcast, IBP_CALL_NONBLOCKING, WORLD);
    ibp_mpich_before_tag();
    send_message(COLLECTIVE, 287, 1);
    ibp_leave();
    enter(IBP_OPERATION_Ialltoall, IBP_CALL_NONBLOCKING, OTHER);
    ibp_mpich_before_tag();
    send_message(OF_OTHER, 287, 10);
    ibp_leave();
    enter(IBP_OPERATION_Barrier, IBP_CALL_COLLECTIVE, WORLD);
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
    enter(IBP_OPERATION_Ibcast, IBP_CALL_NONBLOCKING, WORLD);
    ibp_mpich_before_tag();
    send_message(COLLECTIVE, 300, 1); /* not 287 */
    ibp_leave();
    enter(IBP_OPERATION_Igather, IBP_CALL_NONBLOCKING, WORLD);
    ibp_mpich_before_tag();
    ibp_leave();
    send_message(COLLECTIVE, 301, 10);
    send_message(COLLECTIVE, 300, 100);
    CHECK_BYTES(Ibcast, 101);
    CHECK_BYTES(Igather, 10);
}

static void the_librarys_own_is_control(void)
{
    const struct ibp_mpich_envelope answer = {.context = POINT_TO_POINT, .tag = 1, .is_control = true};

    ibp_mpich_count(answer, peer, 0);
    enter(IBP_OPERATION_Put, IBP_CALL_BLOCKING, 0);
    ibp_mpich_count_active_message(peer, 40);
    ibp_leave();
    ibp_mpich_count_active_message(peer, 5);
    CHECK(bytes_of(IBP_OPERATION_Put, IBP_KIND_CONTROL) == 40);
    CHECK(bytes_of(IBP_OPERATION_UNATTRIBUTED, IBP_KIND_CONTROL) == 5);
    CHECK(bytes_of(IBP_OPERATION_UNATTRIBUTED, IBP_KIND_USER) == 0);
}

static void partitioned_sends_count_when_they_start(void)
{
    void *request = (void *)0x98000001;
    int requests[1] = {(int)0x98000001};

    request = ibp_mpi_request((void **)requests, 0);
    ibp_request_keep_operation(request, IBP_OPERATION_Psend_init);
    CHECK(ibp_request_operation(request) == IBP_OPERATION_Psend_init);
    ibp_request_freed(request);
    CHECK(ibp_request_operation(request) == IBP_OPERATION_NONE);
}

/* Send `items` in a call, of which a given message is seen. */
static void send_call(uint64_t items, uint32_t tag, uint64_t seen_bytes, uint32_t seen_tag)
{
    enter(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
    if (ibp_source_unproved) ibp_mpich_expect(items, 0x4c00010d, 1, (int)tag);
    if (ibp_is_active()) send_message(POINT_TO_POINT, seen_tag, seen_bytes);
    ibp_leave();
}

static void the_first_message_is_proof(void)
{
    ibp_source_unproved = true;
    enter(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
    ibp_mpich_expect(100, 0x4c00010d, 1, 7); /* its message leaves later */
    ibp_leave();
    for (int i = 0; i < 20; i++) {
        enter(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
        ibp_mpich_expect(100000, 0x4c00010d, 1, 7); /* too long to verify the source */
        send_message(POINT_TO_POINT, 7, 50000);
        ibp_leave();
    }
    for (int i = 0; i < 3; i++) send_call(100, 0, 100, 0);
    CHECK(ibp_source_unproved);
    send_call(100, 8, 100, 8);
    CHECK(!ibp_source_unproved && !detached);
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
    for (int i = 0; i < 4; i++) send_call(100, 8, 100, 4); /* as if the tag were in another place */
    CHECK(!detached);
    CHECK_BYTES(Send, 400);
    send_call(100, 8, 100, 4);
    CHECK(detached && !ibp_source_unproved);
    CHECK(reader_process()->source == IBP_SOURCE_NONE);
    CHECK(strstr(reader_process()->notes,
                 "messages between ranks were not seen: 4 messages differed from what was sent"));
}

/* Run a test in a process of its own, since a process has one recording. */
static void run(void (*test)(void))
{
    const pid_t child = fork();
    int status;

    CHECK(child >= 0);
    if (!child) {
        start();
        test();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    run(blocking_calls_are_what_they_say);
    run(rounds_belong_to_what_started_them);
    run(counted_tags_may_begin_elsewhere);
    run(the_librarys_own_is_control);
    run(partitioned_sends_count_when_they_start);
    run(the_first_message_is_proof);
    run(tags_of_nothing_take_several);
    run(a_wrong_guess_is_taken_back);
    return 0;
}
