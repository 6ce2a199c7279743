/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages that MPICH passes to a mock endpoint of libfabric: announcements, their data, active messages. Each byte
 * that the program sends is counted once.
 */
#include "mock_libfabric.h"
#include "mpich_fixture.h"

#include <string.h>

#define PURPOSE(value) ((uint64_t)(value) << 51)
#define BITS(context, tag, purpose) ((uint64_t)(context) << 31 | (tag) | PURPOSE(purpose))
enum {
    REPLY = 1,
    PART_OF_5 = 4,
    ANNOUNCED_BY_5 = 16,
    PACKED_BY_5 = 24,
    PART_OF_4_3 = 32,
    HUGE_OF_4_3 = 16,
    ANNOUNCED_BY_4_3 = 24
};

enum { OTHER_CONTEXT = 0x30 };

static struct ibp_fi_endpoint *endpoint;
static char data[4096];

static void announce(uint64_t bits, uint64_t bytes)
{
    endpoint->tagged->inject_data(endpoint, NULL, 0, bytes << 32 | 1, SOME_ADDRESS, bits);
}

static void move_data(void)
{
    endpoint->memory->write(endpoint, data, 1000, NULL, SOME_ADDRESS, 0, 0, NULL);
    endpoint->memory->read(endpoint, data, 1000, NULL, SOME_ADDRESS, 0, 0, NULL);
}

static void an_announcement_counts_and_its_data_do_not(const char *version, unsigned announced, unsigned part)
{
    const struct iovec piece = {data, 2000};
    const struct ibp_fi_tagged_message message = {&piece, NULL, 1, SOME_ADDRESS, BITS(POINT_TO_POINT, 0, part)};

    endpoint = mock_endpoint(version);
    enter_call(IBP_OPERATION_Isend, IBP_CALL_SENDING, WORLD);
    announce(BITS(POINT_TO_POINT, 7, announced), 7000);
    ibp_leave();
    enter_call(IBP_OPERATION_Bcast, IBP_CALL_COLLECTIVE, WORLD);
    announce(BITS(COLLECTIVE, 2, announced), 500);
    move_data();
    endpoint->tagged->send_message(endpoint, &message, 0);
    endpoint->tagged->send_data(endpoint, data, 4000, NULL, 0, SOME_ADDRESS, BITS(POINT_TO_POINT, 1, part), NULL);
    ibp_leave();
    CHECK(SENT(Isend) == 7000);
    CHECK(SENT(Bcast) == 500);
    CHECK(reader_count(IBP_SEGMENT_COUNTERS) == 2);
}

static void mpich_5_announces(void)
{
    an_announcement_counts_and_its_data_do_not(MPICH_5, ANNOUNCED_BY_5, PART_OF_5);
}

static void mpich_5_announces_what_it_packs(void)
{
    an_announcement_counts_and_its_data_do_not(MPICH_5, PACKED_BY_5, PART_OF_5);
}

static void mpich_4_3_announces(void)
{
    an_announcement_counts_and_its_data_do_not(MPICH_4_3, ANNOUNCED_BY_4_3, PART_OF_4_3);
}

static void replies_are_control(void)
{
    endpoint = mock_endpoint(MPICH_5);
    enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
    endpoint->tagged->inject(endpoint, data, 32, SOME_ADDRESS, BITS(POINT_TO_POINT, 7, REPLY));
    ibp_leave();
    CHECK(CONTROL(UNATTRIBUTED) == 32);
    CHECK(reader_count(IBP_SEGMENT_COUNTERS) == 1);
}

/* -- announcements without a size ---------------------------------------------------------------------------------- */

#define DATA(context, tag) BITS(context, tag, PART_OF_5)

/* Send an announcement with a context, inside a call. */
static void announce_in(unsigned operation, enum ibp_call_kind kind, unsigned context)
{
    enter_call(operation, kind, WORLD);
    announce(BITS(context, 3, ANNOUNCED_BY_5), 0);
    ibp_leave();
}

static void send_data(uint64_t bits, size_t bytes)
{
    endpoint->tagged->send(endpoint, data, bytes, NULL, SOME_ADDRESS, bits, NULL);
}

/* Send a header of the given length, which begins with a size. */
static void send_header(uint64_t bits, size_t bytes, uint64_t size)
{
    memcpy(data, &size, sizeof size);
    endpoint->tagged->inject(endpoint, data, bytes, SOME_ADDRESS, bits);
}

#define FOR_READS (UINT64_C(1) << 12)
#define FOR_WRITES (UINT64_C(1) << 13)

static void register_memory(size_t bytes, uint64_t access)
{
    struct ibp_fi_domain *domain = mock_domain();

    domain->registrations->one(domain, data, bytes, access, 0, 0, 0, NULL, NULL);
}

static void data_in_one_message_count_when_they_leave(void)
{
    endpoint = mock_endpoint(MPICH_5);
    announce_in(IBP_OPERATION_Isend, IBP_CALL_SENDING, POINT_TO_POINT);
    send_data(DATA(OTHER_CONTEXT, 1), 10); /* counted when the data were announced */
    CHECK(SENT(Isend) == 0);
    send_data(DATA(POINT_TO_POINT, 1), 100);
    CHECK(SENT(Isend) == 100);
    send_data(DATA(POINT_TO_POINT, 2), 1000); /* counted when the data were announced */
    CHECK(SENT(Isend) == 100);
    announce_in(IBP_OPERATION_Bcast, IBP_CALL_COLLECTIVE, COLLECTIVE);
    send_data(DATA(POINT_TO_POINT, 3), 10000);
    CHECK(SENT(Bcast) == 10000);
}

static void a_header_has_the_size_of_parts_and_writes(void)
{
    endpoint = mock_endpoint(MPICH_5);
    announce_in(IBP_OPERATION_Isend, IBP_CALL_SENDING, POINT_TO_POINT);
    announce_in(IBP_OPERATION_Isend, IBP_CALL_SENDING, POINT_TO_POINT);
    send_header(DATA(POINT_TO_POINT, 1), 8, 3000);
    for (int i = 0; i < 3; i++) send_data(DATA(POINT_TO_POINT, 1), 1000);
    CHECK(SENT(Isend) == 3000);
    move_data();
    send_header(DATA(POINT_TO_POINT, 2), 8, 111111);
    CHECK(SENT(Isend) == 3000 + 111111);
    send_header(DATA(POINT_TO_POINT, 2), 0, 0);
    CHECK(counted_messages(IBP_OPERATION_Isend, IBP_KIND_USER, IBP_DIRECTION_SENT) == 2);
}

static void a_header_of_memory_to_read_has_a_size(void)
{
    endpoint = mock_endpoint(MPICH_5);
    announce_in(IBP_OPERATION_Send, IBP_CALL_SENDING, POINT_TO_POINT);
    register_memory(500, FOR_WRITES); /* the buffer of a receive */
    send_header(DATA(POINT_TO_POINT, 1), 32, 500);
    CHECK(SENT(Send) == 0);
    register_memory(UINT64_C(5) << 30, FOR_READS);
    send_header(DATA(POINT_TO_POINT, 1), 32, UINT64_C(5) << 30);
    CHECK(SENT(Send) == UINT64_C(5) << 30);
}

static void data_of_several_operations_are_not_attributed(void)
{
    endpoint = mock_endpoint(MPICH_5);
    announce_in(IBP_OPERATION_Isend, IBP_CALL_SENDING, POINT_TO_POINT);
    announce_in(IBP_OPERATION_Bcast, IBP_CALL_COLLECTIVE, COLLECTIVE);
    send_data(DATA(POINT_TO_POINT, 1), 10);
    send_data(DATA(POINT_TO_POINT, 2), 100);
    CHECK(SENT(UNATTRIBUTED) == 10);
    CHECK(SENT(Bcast) == 100);
}

static void many_announcements_are_bounded(void)
{
    endpoint = mock_endpoint(MPICH_5);
    for (int i = 0; i < 5000; i++) announce_in(IBP_OPERATION_Isend, IBP_CALL_SENDING, POINT_TO_POINT);
    for (uint64_t i = 0; i < 5000; i++) send_data(DATA(POINT_TO_POINT, i), 1);
    CHECK(SENT(Isend) + SENT(UNATTRIBUTED) == 5000);
}

static void the_first_part_of_a_message_has_its_size(void)
{
    endpoint = mock_endpoint(MPICH_4_3);
    register_memory(10000, FOR_READS);
    enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
    send_data(BITS(POINT_TO_POINT, 3, HUGE_OF_4_3), 4000);
    ibp_leave();
    move_data();
    CHECK(SENT(Send) == 10000);
}

/* -- active messages ----------------------------------------------------------------------------------------------- */

/* Write the header of an active message: its handler, the length of the next header, and the number of data bytes in
 * this message. */
static void write_active(uint8_t handler, uint8_t next_header_bytes, uint32_t data_bytes)
{
    memset(data, 0, sizeof data);
    data[0] = (char)handler;
    data[2] = (char)next_header_bytes;
    memcpy(data + 3, &data_bytes, 3);
}

static void write_program_header(uint16_t context, uint32_t tag, uint64_t bytes)
{
    memcpy(data + 24 + 4, &tag, sizeof tag);
    memcpy(data + 24 + 8, &context, sizeof context);
    memcpy(data + 24 + 32, &bytes, sizeof bytes);
}

static void send_active(size_t bytes)
{
    endpoint->messages->send(endpoint, data, bytes, NULL, SOME_ADDRESS, NULL);
}

static void active_messages_have_headers_and_data(void)
{
    endpoint = mock_endpoint(MPICH_5);
    enter_call(IBP_OPERATION_Send, IBP_CALL_SENDING, WORLD);
    write_active(0, 48, 1000);
    write_program_header(POINT_TO_POINT, 7, 1000);
    send_active(24 + 48 + 1000);
    ibp_leave();
    CHECK(SENT(Send) == 1000 && CONTROL(UNATTRIBUTED) == 72);
    enter_call(IBP_OPERATION_Allreduce, IBP_CALL_COLLECTIVE, WORLD);
    write_active(0, 48, 0);
    write_program_header(COLLECTIVE, 14, 500000); /* the data follow */
    endpoint->messages->inject(endpoint, data, 24 + 48, SOME_ADDRESS);
    ibp_leave();
    write_active(2, 8, 3000);
    send_active(24 + 8 + 3000);
    write_active(0, 0, 3000); /* another part of the same message */
    send_active(24 + 3000);
    CHECK(SENT(Allreduce) == 500000);
    CHECK(CONTROL(UNATTRIBUTED) == 72 + 72 + 32 + 24);
}

static void damaged_active_messages_are_harmless(void)
{
    endpoint = mock_endpoint(MPICH_5);
    write_active(0, 48, 0xffffff);
    send_active(24);
    send_active(3);
    write_active(200, 48, 10);
    send_active(100);
    CHECK(CONTROL(UNATTRIBUTED) == 3 + 100);
    CHECK(counted_bytes(IBP_OPERATION_UNATTRIBUTED, IBP_KIND_USER, IBP_DIRECTION_SENT) == 0);
}

int main(void)
{
    static void (*const tests[])(void) = {
        mpich_5_announces,
        mpich_5_announces_what_it_packs,
        mpich_4_3_announces,
        replies_are_control,
        data_in_one_message_count_when_they_leave,
        a_header_has_the_size_of_parts_and_writes,
        a_header_of_memory_to_read_has_a_size,
        data_of_several_operations_are_not_attributed,
        many_announcements_are_bounded,
        the_first_part_of_a_message_has_its_size,
        active_messages_have_headers_and_data,
        damaged_active_messages_are_harmless,
    };

    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) run_recorded(tests[i], NULL);
    return 0;
}
