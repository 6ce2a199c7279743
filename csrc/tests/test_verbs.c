/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The verbs source with a mock provider: the recording must contain exactly the requests that the provider accepts.
 */
#include "check.h"
#include "counting/process.h"
#include "counting/timeline.h"
#include "verbs_fixture.h"

#include "ibprof.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_every_opcode(void)
{
    struct ibv_qp *qp = make_qp(&domain0, IBV_QPT_RC);

    CHECK(!connect_qp(qp, 100));
    for (int opcode = 0; opcode < 16; opcode++) CHECK(!post(qp, (enum ibv_wr_opcode)opcode, 1000 + (uint32_t)opcode));
    CHECK(!post(qp, IBV_WR_SEND, 0));
    CHECK_AMOUNT(recorded(100, IBP_OPCODE_SEND, ANY_REGION), 4 * 1000 + 2 + 3 + 9 + 10, 5);
    CHECK_AMOUNT(recorded(100, IBP_OPCODE_WRITE, ANY_REGION), 3 * 1000 + 0 + 1 + 15, 3);
    CHECK_AMOUNT(recorded(100, IBP_OPCODE_READ, ANY_REGION), 1004, 1);
    CHECK_AMOUNT(recorded(100, IBP_OPCODE_ATOMIC, ANY_REGION), 2000 + 5 + 6, 2);
    CHECK_ALL();
}

static void test_lists_are_counted_as_far_as_they_are_accepted(void)
{
    enum { LENGTH = 6 };
    struct ibv_qp *qp = make_qp(&domain0, IBV_QPT_RC);
    struct ibv_sge pieces[LENGTH];
    struct ibv_send_wr requests[LENGTH], *refused;

    CHECK(!connect_qp(qp, 101));
    for (int i = 0; i < LENGTH; i++) {
        pieces[i] = (struct ibv_sge){.length = 1u << i};
        requests[i] = (struct ibv_send_wr){.sg_list = &pieces[i],
                                           .num_sge = 1,
                                           .opcode = i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
                                           .next = i + 1 < LENGTH ? &requests[i + 1] : NULL};
    }
    for (int nth = 1; nth <= LENGTH; nth++) {
        mock_refuse(nth, 0);
        CHECK(ibv_post_send(qp, requests, &refused) == ENOMEM && refused == &requests[nth - 1]);
        CHECK_ALL();
    }
    mock_refuse(1, 0);
    CHECK(post(qp, IBV_WR_SEND, 99) == ENOMEM);
    mock_refuse(3, 1); /* the provider refuses all requests, and does not report which */
    CHECK(ibv_post_send(qp, requests, &refused) == ENOMEM);
    mock_refuse(0, 0);
    CHECK_ALL();
    CHECK(!ibv_post_send(qp, requests, &refused));
    CHECK_ALL();
    CHECK(recorded(101, IBP_OPCODE_WRITE, ANY_REGION).messages == 3 + 1 + 1 + 2 + 2 + 3);
}

static void test_requests_built_piece_by_piece(void)
{
    struct ibv_qp *qp = make_extended_qp(IBV_QPT_RC);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct ibv_sge pieces[3] = {{.length = 1}, {.length = 10}, {.length = 100}};
    struct ibv_data_buf buffers[2] = {{.length = 1000}, {.length = 2000}};
    char data[8] = {0};

    CHECK(!connect_qp(qp, 102));
    ibv_wr_start(ex);
    CHECK(!ibv_wr_complete(ex)); /* without requests */
    for (int round = 0; round < 3; round++) {
        mock_refuse(round == 1, 0);
        ibv_wr_start(ex);
        ibv_wr_send(ex);
        ibv_wr_set_sge(ex, 0, 0, 7);
        ibv_wr_send_imm(ex, 1);
        ibv_wr_set_inline_data(ex, data, 8);
        ibv_wr_send_inv(ex, 1);
        ibv_wr_set_inline_data_list(ex, 2, buffers);
        ibv_wr_send_tso(ex, data, 8, 8);
        ibv_wr_set_sge_list(ex, 3, pieces);
        ibv_wr_local_inv(ex, 1);
        ibv_wr_rdma_write(ex, 1, 1);
        ibv_wr_set_sge(ex, 0, 0, 20000);
        ibv_wr_rdma_write_imm(ex, 1, 1, 1);
        ibv_wr_set_sge(ex, 0, 0, 30000);
        ibv_wr_rdma_read(ex, 1, 1);
        ibv_wr_set_sge(ex, 0, 0, 40000);
        ibv_wr_atomic_cmp_swp(ex, 1, 1, 1, 1);
        ibv_wr_set_sge(ex, 0, 0, 8);
        ibv_wr_atomic_fetch_add(ex, 1, 1, 1);
        ibv_wr_set_sge(ex, 0, 0, 8);
        (*(void (**)(struct ibv_qp_ex *, uint32_t, uint64_t, const void *))((char *)&ex->wr_abort + sizeof(void *)))(
            ex, 1, 1, data); /* wr_atomic_write, which the oldest headers lack */
        if (round == 2)
            ibv_wr_abort(ex);
        else
            CHECK(ibv_wr_complete(ex) == (round ? ENOMEM : 0));
        CHECK_AMOUNT(recorded(102, IBP_OPCODE_SEND, ANY_REGION), 7 + 8 + 3000 + 111, 4);
        CHECK_AMOUNT(recorded(102, IBP_OPCODE_WRITE, ANY_REGION), 50008, 3);
        CHECK_AMOUNT(recorded(102, IBP_OPCODE_READ, ANY_REGION), 40000, 1);
        CHECK_AMOUNT(recorded(102, IBP_OPCODE_ATOMIC, ANY_REGION), 16, 2);
        CHECK_ALL();
    }
    CHECK(!post(qp, IBV_WR_SEND, 5)); /* plain posting still works */
    CHECK_ALL();
}

/* One thread may build requests for several queue pairs in turns, and may abandon the last request. */
static void test_two_queue_pairs_built_in_turns(void)
{
    struct ibv_qp *qps[3];
    struct ibv_qp_ex *ex[3];

    for (int i = 0; i < 3; i++) {
        qps[i] = make_extended_qp(IBV_QPT_RC);
        ex[i] = ibv_qp_to_qp_ex(qps[i]);
        CHECK(!connect_qp(qps[i], (uint16_t)(110 + i)));
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++) {
            ibv_wr_start(ex[i]);
            ibv_wr_send(ex[i]);
        }
        for (int i = 0; i < 2; i++) {
            ibv_wr_set_sge(ex[i], 0, 0, 10 + (uint32_t)i);
            for (int j = 0; j < 12; j++) {
                if (j % 2)
                    ibv_wr_rdma_read(ex[i], 1, 1);
                else
                    ibv_wr_rdma_write(ex[i], 1, 1);
                ibv_wr_set_sge(ex[i], 0, 0, 100);
            }
        }
        for (int i = 0; i < 2; i++) CHECK(!ibv_wr_complete(ex[i]));
        CHECK_ALL();
    }
    CHECK_AMOUNT(recorded(110, IBP_OPCODE_SEND, ANY_REGION), 20, 2);
    CHECK_AMOUNT(recorded(111, IBP_OPCODE_SEND, ANY_REGION), 22, 2);
    CHECK_AMOUNT(recorded(111, IBP_OPCODE_READ, ANY_REGION), 1200, 12);
    ibv_wr_start(ex[2]);
    ibv_wr_send(ex[2]);
    ibv_wr_set_sge(ex[2], 0, 0, 1);
    ibv_wr_start(ex[0]);
    CHECK(!ibv_destroy_qp(qps[2]));
    CHECK(!ibv_wr_complete(ex[0]));
    ibv_wr_start(ex[1]);
    ibv_wr_send(ex[1]);
    ibv_wr_set_sge(ex[1], 0, 0, 1);
    ibv_wr_start(ex[1]); /* again, without requests */
    CHECK(!ibv_wr_complete(ex[1]));
    CHECK_ALL();
}

static void test_a_thousand_queue_pairs(void)
{
    enum { COUNT = 1000 };
    static struct ibv_qp *qps[COUNT];
    const int pairs = reader_count(IBP_SEGMENT_PAIRS);

    for (int i = 0; i < COUNT; i++) {
        qps[i] = make_qp(&domain0, IBV_QPT_RC);
        CHECK(!connect_qp(qps[i], (uint16_t)(2000 + i)));
    }
    CHECK(reader_count(IBP_SEGMENT_PAIRS) == pairs); /* no further pair */
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < COUNT; i++) CHECK(!post(qps[i], IBV_WR_RDMA_WRITE, (uint32_t)i));
    for (int i = 0; i < COUNT; i++)
        CHECK_AMOUNT(recorded((uint32_t)(2000 + i), IBP_OPCODE_WRITE, ANY_REGION), 5 * (uint64_t)i, 5);
    CHECK_ALL();
}

enum { THREADS = 8, SHARED_QPS = 4, POSTS = 20000 };
static struct ibv_qp *shared_qps[SHARED_QPS];
static bool stop_regions;

static void *post_many(void *number)
{
    struct ibv_qp *own = make_qp(&domain0, IBV_QPT_RC);

    CHECK(!connect_qp(own, 3000));
    for (uint32_t i = 0; i < POSTS; i++) {
        CHECK(!post(shared_qps[i % SHARED_QPS], i % 3 ? IBV_WR_SEND : IBV_WR_RDMA_READ, i % 1000));
        CHECK(!post(own, IBV_WR_RDMA_WRITE, (uint32_t)(uintptr_t)number));
    }
    CHECK(!ibv_destroy_qp(own));
    return NULL;
}

static void *change_regions(void *unused)
{
    while (!__atomic_load_n(&stop_regions, __ATOMIC_RELAXED)) {
        ibprof_region_begin("one");
        ibprof_region_end();
        ibprof_region("two");
    }
    return unused;
}

static void test_many_threads_on_the_same_queue_pairs(void)
{
    pthread_t threads[THREADS], regions;
    uint64_t sum = 0;

    for (int i = 0; i < SHARED_QPS; i++) {
        shared_qps[i] = make_qp(&domain0, IBV_QPT_RC);
        CHECK(!connect_qp(shared_qps[i], 3001));
    }
    CHECK(!pthread_create(&regions, NULL, change_regions, NULL));
    for (uintptr_t i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, post_many, (void *)(i + 1)));
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
    __atomic_store_n(&stop_regions, true, __ATOMIC_RELAXED);
    CHECK(!pthread_join(regions, NULL));
    CHECK_ALL();
    CHECK_AMOUNT(recorded(3000, IBP_OPCODE_WRITE, ANY_REGION), POSTS * (8 * 9 / 2), THREADS * POSTS);
    for (int region = 0; region < reader_count(IBP_SEGMENT_REGIONS); region++)
        sum += recorded(3000, IBP_OPCODE_WRITE, region).messages;
    CHECK(sum == THREADS * POSTS);
}

static int region_named(const char *name)
{
    for (int i = 0; i < reader_count(IBP_SEGMENT_REGIONS); i++)
        if (!strcmp(((const struct ibp_region *)reader_record(IBP_SEGMENT_REGIONS, i))->name, name)) return i;
    CHECK(!"a region of that name");
    return -1;
}

static void test_regions_and_switching_off(void)
{
    struct ibv_qp *qp = make_qp(&domain0, IBV_QPT_RC);

    CHECK(!connect_qp(qp, 500));
    CHECK(!post(qp, IBV_WR_SEND, 1)); /* region 0 */
    ibprof_region_begin("inner");
    CHECK(!post(qp, IBV_WR_SEND, 10));
    CHECK_AMOUNT(recorded(500, IBP_OPCODE_SEND, region_named("inner")), 10, 1); /* recorded before the region ends */
    ibprof_region_begin("innermost");
    CHECK(!post(qp, IBV_WR_SEND, 100));
    ibprof_region_end();
    ibprof_region_end();
    CHECK(!post(qp, IBV_WR_SEND, 1000)); /* region 0 */
    CHECK_AMOUNT(recorded(500, IBP_OPCODE_SEND, 0), 1001, 2);
    ibprof_region("closed");
    CHECK(!post(qp, IBV_WR_SEND, 10000));
    ibprof_off();
    CHECK(!post(qp, IBV_WR_SEND, 100000));
    ibprof_region_begin("while off");
    CHECK(!post(qp, IBV_WR_SEND, 100000));
    ibprof_region_end();
    ibprof_on();
    ibprof_region("closed");
    CHECK(!post(qp, IBV_WR_SEND, 1000000));
    CHECK_AMOUNT(recorded(500, IBP_OPCODE_SEND, region_named("inner")), 10, 1);
    CHECK_AMOUNT(recorded(500, IBP_OPCODE_SEND, region_named("innermost")), 100, 1);
    CHECK_AMOUNT(recorded(500, IBP_OPCODE_SEND, region_named("closed")), 11001, 3);
    CHECK_AMOUNT(recorded(500, IBP_OPCODE_SEND, 0), 1000000, 1);
    CHECK_AMOUNT(recorded(500, IBP_OPCODE_SEND, (int)IBP_REGION_OFF), 200000, 2);
    CHECK_AMOUNT(recorded(500, IBP_OPCODE_SEND, ANY_REGION), 1211111, 8);
}

static void test_a_forked_child_counts_nothing(void)
{
    struct ibv_qp *qp = make_qp(&domain0, IBV_QPT_RC);
    int status;
    pid_t child;

    CHECK(!connect_qp(qp, 600) && !post(qp, IBV_WR_SEND, 1));
    child = fork();
    CHECK(child >= 0);
    if (!child) {
        struct ibv_qp *own = make_qp(&domain0, IBV_QPT_RC);

        _exit(connect_qp(own, 601) || post(own, IBV_WR_SEND, 5) || post(qp, IBV_WR_SEND, 5));
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK_AMOUNT(recorded(600, IBP_OPCODE_SEND, ANY_REGION), 1, 1);
    CHECK_AMOUNT(recorded(601, IBP_OPCODE_SEND, ANY_REGION), 0, 0);
}

/* No source counts MPI's messages, so there are no snapshots, although IBPROF_INTERVAL is set. */
static void test_no_snapshot_without_a_time_line(void)
{
    CHECK(!setenv("IBPROF_INTERVAL", "10", 1));
    ibp_timeline_select();
    ibp_process_finish();
    CHECK(reader_count(IBP_SEGMENT_SNAPSHOTS) == 0);
}

int main(void)
{
    verbs_begin();
    test_every_opcode();
    test_lists_are_counted_as_far_as_they_are_accepted();
    test_requests_built_piece_by_piece();
    test_two_queue_pairs_built_in_turns();
    test_a_thousand_queue_pairs();
    test_many_threads_on_the_same_queue_pairs();
    test_regions_and_switching_off();
    test_a_forked_child_counts_nothing();
    test_no_snapshot_without_a_time_line();
    return verbs_end();
}
