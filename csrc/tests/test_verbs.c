/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The verbs source with a made-up provider: what that accepted, no more and no less, must be in the recording, between the
 * right ports. Calls go through the real headers' inline functions, as a program's do.
 */
#include "check.h"
#include "lifecycle.h"
#include "made_up_verbs.h"
#include "recording_parts.h"

#include "ibprof.h"

#include <infiniband/mlx5dv.h>
#include <endian.h>

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LID_OF_RAIL0 11
#define ANY_REGION (-1)

static struct ibv_context *rail0, *rail1;
static struct ibv_pd domain0, domain1;

/* -- what was recorded ------------------------------------------------------------------------------------------------------ */

/* Adds up what was recorded with a remote LID (0: with every), of one kind, in a region as a reader tells them apart. */
static struct amount recorded(uint32_t remote_lid, int opcode, int region)
{
    struct amount sum = {0, 0};

    for (int i = 0; i < parts_count(IBP_SEGMENT_TRANSFERS); i++) {
        const struct ibp_transfer *transfer = parts_record(IBP_SEGMENT_TRANSFERS, i);
        const struct ibp_pair *pair = parts_record(IBP_SEGMENT_PAIRS, (int)transfer->pair);
        const bool all = transfer->region == IBP_REGION_ALL;
        uint64_t sign = 0;

        if ((remote_lid && pair->remote_lid != remote_lid) || (int)transfer->opcode != opcode) continue;
        if (region == ANY_REGION)
            sign = all;
        else if (region == (int)parts_process()->transfers_region)
            sign = all ? 1 : transfer->region == (uint32_t)region ? 0 : UINT64_MAX;
        else
            sign = transfer->region == (uint32_t)region;
        sum.bytes += sign * transfer->bytes;
        sum.messages += sign * transfer->messages;
    }
    return sum;
}

static void check_amount(int line, struct amount found, uint64_t bytes, uint64_t messages)
{
    if (found.bytes == bytes && found.messages == messages) return;
    fprintf(stderr, "line %d: %llu bytes in %llu messages, not %llu in %llu\n", line, (unsigned long long)found.bytes,
            (unsigned long long)found.messages, (unsigned long long)bytes, (unsigned long long)messages);
    exit(1);
}
#define CHECK_AMOUNT(found, bytes, messages) check_amount(__LINE__, found, bytes, messages)

/* All that the provider accepted was recorded, and nothing else. */
static void check_all(int line)
{
    uint64_t bytes[4], messages[4];

    made_up_accepted(bytes, messages);
    for (int opcode = 0; opcode < 4; opcode++)
        check_amount(line, recorded(0, opcode, ANY_REGION), bytes[opcode], messages[opcode]);
}
#define CHECK_ALL() check_all(__LINE__)

/* -- posting ---------------------------------------------------------------------------------------------------------------- */

static struct ibv_qp *make_qp(struct ibv_pd *domain, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr wanted = {.qp_type = type};
    struct ibv_qp *qp = ibv_create_qp(domain, &wanted);

    CHECK(qp);
    return qp;
}

static struct ibv_qp *make_extended_qp(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr_ex wanted = {
        .qp_type = type,
        .pd = &domain0,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = 0xffff,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(rail0, &wanted);

    CHECK(qp && ibv_qp_to_qp_ex(qp));
    return qp;
}

static int connect_qp(struct ibv_qp *qp, uint16_t lid)
{
    struct ibv_qp_attr own = {.port_num = 1}, there = {.ah_attr = {.dlid = lid, .port_num = 1}};

    return ibv_modify_qp(qp, &own, IBV_QP_STATE | IBV_QP_PORT) || ibv_modify_qp(qp, &there, IBV_QP_STATE | IBV_QP_AV);
}

static int post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t bytes)
{
    struct ibv_sge pieces[2] = {{.length = bytes / 2}, {.length = bytes - bytes / 2}};
    struct ibv_send_wr request = {.sg_list = pieces, .num_sge = 2, .opcode = opcode}, *refused;

    return ibv_post_send(qp, &request, &refused);
}

/* -- cases ------------------------------------------------------------------------------------------------------------------ */

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
        made_up_refuse(nth, 0);
        CHECK(ibv_post_send(qp, requests, &refused) == ENOMEM && refused == &requests[nth - 1]);
        CHECK_ALL();
    }
    made_up_refuse(1, 0);
    CHECK(post(qp, IBV_WR_SEND, 99) == ENOMEM);
    made_up_refuse(3, 1); /* refuses all and names none */
    CHECK(ibv_post_send(qp, requests, &refused) == ENOMEM);
    made_up_refuse(0, 0);
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
    CHECK(!ibv_wr_complete(ex)); /* of nothing */
    for (int round = 0; round < 3; round++) {
        made_up_refuse(round == 1, 0);
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
    CHECK(!post(qp, IBV_WR_SEND, 5)); /* the plain way stays open */
    CHECK_ALL();
}

static void test_datagrams_go_where_each_one_says(void)
{
    enum { HANDLES = 300 };
    struct ibv_qp *qp = make_qp(&domain0, IBV_QPT_UD), *extended = make_extended_qp(IBV_QPT_UD);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(extended);
    struct ibv_ah *handles[HANDLES], unknown;
    struct ibv_send_wr requests[HANDLES], *refused;
    struct ibv_sge piece = {.length = 10};
    struct ibv_wc completion = {.slid = 777};

    for (int i = 0; i < HANDLES; i++) {
        struct ibv_ah_attr path = {.dlid = (uint16_t)(1000 + i), .port_num = 1};

        handles[i] = ibv_create_ah(&domain0, &path);
        requests[i] = (struct ibv_send_wr){.sg_list = &piece,
                                           .num_sge = 1,
                                           .opcode = IBV_WR_SEND,
                                           .wr.ud.ah = handles[i],
                                           .next = i + 1 < HANDLES ? &requests[i + 1] : NULL};
    }
    CHECK(!ibv_post_send(qp, requests, &refused));
    made_up_refuse(HANDLES / 2, 0);
    CHECK(ibv_post_send(qp, requests, &refused));
    made_up_refuse(0, 0);
    CHECK_AMOUNT(recorded(1000, IBP_OPCODE_SEND, ANY_REGION), 20, 2);
    CHECK_AMOUNT(recorded(1000 + HANDLES - 1, IBP_OPCODE_SEND, ANY_REGION), 10, 1);
    ibv_wr_start(ex);
    for (int i = 0; i < HANDLES; i++) {
        ibv_wr_send(ex);
        ibv_wr_set_ud_addr(ex, handles[i], 1, 1);
        ibv_wr_set_sge(ex, 0, 0, 100);
    }
    CHECK(!ibv_wr_complete(ex));
    CHECK_AMOUNT(recorded(1000, IBP_OPCODE_SEND, ANY_REGION), 120, 3);
    CHECK_AMOUNT(recorded(1000 + HANDLES - 1, IBP_OPCODE_SEND, ANY_REGION), 110, 2);
    requests[0] = (struct ibv_send_wr){.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud.ah = &unknown};
    CHECK(!ibv_post_send(qp, requests, &refused));
    CHECK_ALL();
    requests[0].wr.ud.ah = ibv_create_ah_from_wc(&domain0, &completion, NULL, 1);
    CHECK(!ibv_post_send(qp, requests, &refused));
    CHECK_AMOUNT(recorded(777, IBP_OPCODE_SEND, ANY_REGION), 10, 1);
    for (int i = 0; i < HANDLES; i++) CHECK(!ibv_destroy_ah(handles[i]));
    CHECK_ALL();
}

static void test_queue_pairs_come_and_go(void)
{
    struct ibv_qp *qp = make_qp(&domain0, IBV_QPT_RC), *other;

    CHECK(!post(qp, IBV_WR_SEND, 3)); /* not connected: somewhere */
    CHECK_ALL();
    CHECK(!connect_qp(qp, 200) && !post(qp, IBV_WR_SEND, 1));
    made_up_fail(1);
    CHECK(connect_qp(qp, 201) && ibv_destroy_qp(qp) == EBUSY);
    made_up_fail(0);
    CHECK(!post(qp, IBV_WR_SEND, 10));
    CHECK_AMOUNT(recorded(200, IBP_OPCODE_SEND, ANY_REGION), 11, 2);
    CHECK(!connect_qp(qp, 202) && !post(qp, IBV_WR_SEND, 100));
    CHECK_AMOUNT(recorded(200, IBP_OPCODE_SEND, ANY_REGION), 11, 2);
    CHECK_AMOUNT(recorded(202, IBP_OPCODE_SEND, ANY_REGION), 100, 1);
    for (uint16_t i = 0; i < 2000; i++) { /* addresses come again */
        CHECK(!ibv_destroy_qp(qp));
        qp = make_qp(&domain0, IBV_QPT_RC);
        CHECK(!connect_qp(qp, 300 + i % 3) && !post(qp, IBV_WR_RDMA_READ, 1));
    }
    CHECK_AMOUNT(recorded(300, IBP_OPCODE_READ, ANY_REGION), 667, 667);
    CHECK_AMOUNT(recorded(302, IBP_OPCODE_READ, ANY_REGION), 666, 666);
    other = make_qp(&domain1, IBV_QPT_RC);
    CHECK(!connect_qp(other, 0) && !post(other, IBV_WR_SEND, 1));
    CHECK_ALL();
}

static const struct ibp_pair *find_pair(uint32_t remote_lid)
{
    for (int i = 0; i < parts_count(IBP_SEGMENT_PAIRS); i++) {
        const struct ibp_pair *pair = parts_record(IBP_SEGMENT_PAIRS, i);

        if (pair->remote_lid == remote_lid) return pair;
    }
    return NULL;
}

static void test_both_ends_of_a_pair(void)
{
    struct ibv_qp *qp = make_qp(&domain0, IBV_QPT_RC);
    struct ibv_qp_attr there = {.ah_attr = {.dlid = 400, .port_num = 1, .src_path_bits = 1}};
    struct ibv_qp_attr far = {
        .ah_attr = {.dlid = 49152, .port_num = 1, .is_global = 1, .grh = {.sgid_index = 1, .dgid.raw = {[15] = 9}}}};
    const struct ibp_pair *pair;

    CHECK(!ibv_modify_qp(qp, &there, IBV_QP_AV) && !post(qp, IBV_WR_SEND, 1));
    pair = find_pair(400);
    CHECK(pair && !strcmp(pair->device, "rail0") && pair->port == 1 && pair->lid == (LID_OF_RAIL0 | 1));
    CHECK(!pair->remote_gid[15] && !pair->gid[15]);
    /* The same by Ethernet: the GIDs count, the LID is something else's. */
    qp = make_qp(&domain1, IBV_QPT_RC);
    CHECK(!ibv_modify_qp(qp, &far, IBV_QP_AV) && !post(qp, IBV_WR_SEND, 1));
    CHECK(!find_pair(49152));
    pair = parts_record(IBP_SEGMENT_PAIRS, parts_count(IBP_SEGMENT_PAIRS) - 1);
    CHECK(!strcmp(pair->device, "rail1") && !pair->lid && !pair->remote_lid && pair->remote_gid[15] == 9);
    CHECK(pair->gid[10] == 0xff && pair->gid[11] == 0xff && pair->gid[12] == 10 && pair->gid[15] == 1);
}

static void test_a_thousand_queue_pairs(void)
{
    enum { COUNT = 1000 };
    static struct ibv_qp *qps[COUNT];
    const int pairs = parts_count(IBP_SEGMENT_PAIRS);

    for (int i = 0; i < COUNT; i++) {
        qps[i] = make_qp(&domain0, IBV_QPT_RC);
        CHECK(!connect_qp(qps[i], (uint16_t)(2000 + i)));
    }
    CHECK(parts_count(IBP_SEGMENT_PAIRS) == pairs); /* none was spoken to */
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
    for (int region = 0; region < parts_count(IBP_SEGMENT_REGIONS); region++)
        sum += recorded(3000, IBP_OPCODE_WRITE, region).messages;
    CHECK(sum == THREADS * POSTS);
}

static int region_named(const char *name)
{
    for (int i = 0; i < parts_count(IBP_SEGMENT_REGIONS); i++)
        if (!strcmp(((const struct ibp_region *)parts_record(IBP_SEGMENT_REGIONS, i))->name, name)) return i;
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
    CHECK_AMOUNT(recorded(500, IBP_OPCODE_SEND, region_named("inner")), 10, 1); /* as a kill would leave it */
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

static void test_queue_pairs_that_post_past_verbs_are_counted(void)
{
    struct ibv_qp_init_attr_ex wanted = {.qp_type = IBV_QPT_RC, .pd = &domain0, .comp_mask = IBV_QP_INIT_ATTR_PD};
    struct mlx5dv_qp_init_attr target = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                         .dc_init_attr.dc_type = MLX5DV_DCTYPE_DCT};
    struct mlx5dv_qp_init_attr initiator = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                            .dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI};
    struct ibv_qp *plain = make_qp(&domain0, IBV_QPT_RC), *direct;
    struct mlx5dv_obj object = {.qp.in = plain};
    uint16_t command[8] = {htobe16(0x500)}, answer[8] = {0};

    CHECK(parts_process()->queue_pairs_unseen == 0);
    CHECK(mlx5dv_create_qp(rail0, &wanted, &target)); /* only receives */
    CHECK(parts_process()->queue_pairs_unseen == 0);
    direct = mlx5dv_create_qp(rail0, &wanted, NULL);
    CHECK(direct && mlx5dv_create_qp(rail0, &wanted, &initiator));
    CHECK(parts_process()->queue_pairs_unseen == 2);
    CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ) && parts_process()->queue_pairs_unseen == 2);
    CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_QP) && !mlx5dv_init_obj(&object, MLX5DV_OBJ_QP));
    CHECK(parts_process()->queue_pairs_unseen == 3);
    CHECK(mlx5dv_devx_obj_create(rail0, command, sizeof command, answer, sizeof answer));
    CHECK(parts_process()->queue_pairs_unseen == 4);
    command[0] = htobe16(0x400); /* CREATE_CQ */
    CHECK(mlx5dv_devx_obj_create(rail0, command, sizeof command, answer, sizeof answer));
    CHECK(parts_process()->queue_pairs_unseen == 4);
    /* One that posts by verbs after all is seen. */
    CHECK(!connect_qp(plain, 700) && !post(plain, IBV_WR_SEND, 1) && !connect_qp(direct, 700));
    CHECK(!post(direct, IBV_WR_SEND, 1) && !post(direct, IBV_WR_SEND, 1));
    CHECK(parts_process()->queue_pairs_unseen == 2);
    CHECK_AMOUNT(recorded(700, IBP_OPCODE_SEND, ANY_REGION), 3, 3);
}

static void make_devices(const char *folder)
{
    char path[600];

    snprintf(path, sizeof path,
             "mkdir -p %s/rail0/ports/1/gids %s/rail1/ports/1/gids && cd %s && "
             "echo InfiniBand > rail0/ports/1/link_layer && echo Ethernet > rail1/ports/1/link_layer && "
             "echo 0x%x > rail0/ports/1/lid && echo 0x0 > rail1/ports/1/lid && "
             "echo 0000:0000:0000:0000:0000:ffff:0a00:0001 > rail1/ports/1/gids/1",
             folder, folder, folder, LID_OF_RAIL0 & ~1);
    CHECK(!system(path));
    setenv("IBPROF_SYSFS", folder, 1);
}

int main(void)
{
    const char *folder = make_test_folder();
    char output[400];

    make_devices(folder);
    snprintf(output, sizeof output, "%s/recording", folder);
    setenv("IBPROF_OUTPUT", output, 1);
    rail0 = ibv_open_device(made_up_device("rail0"));
    rail1 = ibv_open_device(made_up_device("rail1"));
    CHECK(rail0 && rail1);
    domain0.context = rail0;
    domain1.context = rail1;
    CHECK(!ibv_destroy_qp(make_qp(&domain0, IBV_QPT_RC)));
    CHECK(access(output, F_OK)); /* nothing was posted yet, so nothing was done */
    CHECK(!post(make_qp(&domain0, IBV_QPT_RC), IBV_WR_SEND, 1));
    parts_open(output);

    test_every_opcode();
    test_lists_are_counted_as_far_as_they_are_accepted();
    test_requests_built_piece_by_piece();
    test_datagrams_go_where_each_one_says();
    test_queue_pairs_come_and_go();
    test_both_ends_of_a_pair();
    test_a_thousand_queue_pairs();
    test_many_threads_on_the_same_queue_pairs();
    test_regions_and_switching_off();
    test_a_forked_child_counts_nothing();
    test_queue_pairs_that_post_past_verbs_are_counted();
    CHECK_ALL();
    CHECK(parts_process()->world_size == 0 && !parts_process()->transfers_lost_messages);
    return 0;
}
