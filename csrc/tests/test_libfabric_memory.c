/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Reads and writes of a peer's memory, and atomic operations on it, on a mock endpoint. Outside of one-sided calls,
 * each byte is counted as sent or as fetched.
 */
#include "counting/count.h"
#include "mock_libfabric.h"
#include "mpich_fixture.h"
#include "sources/mpich/libfabric_memory.h"

#include <errno.h>

static struct ibp_fi_endpoint *endpoint;
static char data[4096];

/* Write 1, 10, 100, 1000, 10,000 and 100,000 bytes to the peer, each number by a different function. */
static void write_each(void)
{
    const struct iovec part = {data, 100}, other = {data, 1000};
    const struct ibp_fi_message message = {&other, NULL, 1, SOME_ADDRESS};

    endpoint->memory->write(endpoint, data, 1, NULL, SOME_ADDRESS, 0, 0, NULL);
    endpoint->memory->inject(endpoint, data, 10, SOME_ADDRESS, 0, 0);
    endpoint->memory->write_parts(endpoint, &part, NULL, 1, SOME_ADDRESS, 0, 0, NULL);
    endpoint->memory->write_message(endpoint, &message, 0);
    endpoint->memory->write_data(endpoint, data, 10000, NULL, 0, SOME_ADDRESS, 0, 0, NULL);
    endpoint->memory->inject_data(endpoint, data, 100000, 0, SOME_ADDRESS, 0, 0);
}

static void read_each(void)
{
    const struct iovec parts[] = {{data, 10}, {data, 20}};
    const struct ibp_fi_message message = {parts, NULL, 2, SOME_ADDRESS};

    endpoint->memory->read(endpoint, data, 1, NULL, SOME_ADDRESS, 0, 0, NULL);
    endpoint->memory->read_parts(endpoint, parts, NULL, 1, SOME_ADDRESS, 0, 0, NULL);
    endpoint->memory->read_message(endpoint, &message, 0);
}

enum { INT8 = 0, INT64 = 6, SUM = 2, READ = 10 };

/* Send 1, 10, 100 and 1000 items of 8 bytes. */
static void add_each(void)
{
    const struct ibp_fi_items part = {data, 100}, other = {data, 1000};
    const struct ibp_fi_atomic_message message = {&other, NULL, 1, SOME_ADDRESS, NULL, 1, INT64, SUM};

    endpoint->atomics->write(endpoint, data, 1, NULL, SOME_ADDRESS, 0, 0, INT64, SUM, NULL);
    endpoint->atomics->inject(endpoint, data, 10, SOME_ADDRESS, 0, 0, INT64, SUM);
    endpoint->atomics->write_parts(endpoint, &part, NULL, 1, SOME_ADDRESS, 0, 0, INT64, SUM, NULL);
    endpoint->atomics->write_message(endpoint, &message, 0);
}

/* Send 1, 20 and 30 items of 1 byte, and fetch the results; fetch 300 more items without sending. */
static void fetch_each(void)
{
    struct ibp_fi_items parts[] = {{data, 10}, {data, 20}, {data, 300}};
    const struct ibp_fi_atomic_message message = {parts, NULL, 2, SOME_ADDRESS, NULL, 1, INT8, SUM};
    const struct ibp_fi_atomic_message reads = {parts + 2, NULL, 1, SOME_ADDRESS, NULL, 1, INT8, READ};

    endpoint->atomics->fetch(endpoint, data, 1, NULL, data, NULL, SOME_ADDRESS, 0, 0, INT8, SUM, NULL);
    endpoint->atomics->fetch_parts(endpoint, parts + 1, NULL, 1, parts + 1, NULL, 1, SOME_ADDRESS, 0, 0, INT8, SUM,
                                   NULL);
    endpoint->atomics->fetch_message(endpoint, &message, parts, NULL, 2, 0);
    endpoint->atomics->fetch_message(endpoint, &reads, parts + 2, NULL, 1, 0);
}

/* Compare-and-swap 1, 20 and 30 items of 1 byte. Each operation sends a new value and an expected value, and fetches
 * the old value. */
static void compare_each(void)
{
    struct ibp_fi_items parts[] = {{data, 10}, {data, 20}};
    const struct ibp_fi_atomic_message message = {parts, NULL, 2, SOME_ADDRESS, NULL, 1, INT8, SUM};

    endpoint->atomics->compare(endpoint, data, 1, NULL, data, NULL, data, NULL, SOME_ADDRESS, 0, 0, INT8, SUM, NULL);
    endpoint->atomics->compare_parts(endpoint, parts + 1, NULL, 1, parts + 1, NULL, 1, parts + 1, NULL, 1, SOME_ADDRESS,
                                     0, 0, INT8, SUM, NULL);
    endpoint->atomics->compare_message(endpoint, &message, parts, NULL, 2, parts, NULL, 2, 0);
}

static void each_atomic_operation_counts_outside_of_one_sided_calls(void)
{
    endpoint = mock_endpoint(INTEL);
    add_each();
    CHECK(SENT(UNATTRIBUTED) == 8888 && FETCHED(UNATTRIBUTED) == 0);
    fetch_each();
    CHECK(SENT(UNATTRIBUTED) == 8888 + 51 && FETCHED(UNATTRIBUTED) == 351);
    compare_each();
    CHECK(SENT(UNATTRIBUTED) == 8888 + 51 + 102 && FETCHED(UNATTRIBUTED) == 351 + 51);
}

static void unknown_atomic_types_are_harmless(void)
{
    endpoint = mock_endpoint(INTEL);
    endpoint->atomics->inject(endpoint, data, 10, SOME_ADDRESS, 0, 0, -1, SUM);
    endpoint->atomics->inject(endpoint, data, 10, SOME_ADDRESS, 0, 0, 1 << 20, SUM);
    CHECK(SENT(UNATTRIBUTED) == 0);
}

static void each_write_and_read_counts_where_none_is_announced(void)
{
    endpoint = mock_endpoint(INTEL);
    write_each();
    read_each();
    CHECK(SENT(UNATTRIBUTED) == 111111);
    CHECK(FETCHED(UNATTRIBUTED) == 1 + 10 + 30);
}

static void what_fails_does_not_count(void)
{
    endpoint = mock_endpoint(INTEL);
    mock_result = -EAGAIN;
    write_each();
    read_each();
    add_each();
    fetch_each();
    compare_each();
    endpoint->tagged->inject(endpoint, data, 8, SOME_ADDRESS, 3);
    CHECK(!reader_count(IBP_SEGMENT_COUNTERS));
}

static void one_sided_calls_count_their_arguments(void)
{
    endpoint = mock_endpoint(INTEL);
    enter_call(IBP_OPERATION_Put, IBP_CALL_BLOCKING, 0);
    write_each();
    ibp_leave();
    enter_call(IBP_OPERATION_Fetch_and_op, IBP_CALL_BLOCKING, 0);
    fetch_each();
    ibp_leave();
    enter_call(IBP_OPERATION_Win_flush, IBP_CALL_BLOCKING, 0);
    read_each();
    ibp_leave();
    CHECK(!reader_count(IBP_SEGMENT_COUNTERS));
}

static void what_moves_for_windows_is_control(void)
{
    endpoint = mock_endpoint(INTEL);
    ibp_counts_arguments = true;
    read_each();
    CHECK(FETCHED(UNATTRIBUTED) == 0);
    CHECK(counted_bytes(IBP_OPERATION_UNATTRIBUTED, IBP_KIND_CONTROL, IBP_DIRECTION_FETCHED) == 1 + 10 + 30);
}

static void announced_data_do_not_count_when_they_move(void)
{
    endpoint = mock_endpoint(MPICH_5);
    write_each();
    read_each();
    add_each();
    CHECK(!reader_count(IBP_SEGMENT_COUNTERS));
}

static void triggered_operations_are_noticed(void)
{
    struct ibp_fi_domain *domain = mock_domain();

    domain->object.table->control(&domain->object, 6, NULL); /* FI_ENABLE */
    CHECK(!ibp_fi_work_was_queued());
    domain->object.table->control(&domain->object, 11, NULL); /* FI_QUEUE_WORK */
    CHECK(ibp_fi_work_was_queued());
}

int main(void)
{
    static void (*const tests[])(void) = {
        each_write_and_read_counts_where_none_is_announced,
        each_atomic_operation_counts_outside_of_one_sided_calls,
        unknown_atomic_types_are_harmless,
        what_fails_does_not_count,
        one_sided_calls_count_their_arguments,
        what_moves_for_windows_is_control,
        announced_data_do_not_count_when_they_move,
        triggered_operations_are_noticed,
    };

    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) run_recorded(tests[i], NULL);
    return 0;
}
