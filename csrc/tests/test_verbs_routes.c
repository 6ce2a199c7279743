/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The recorded ports of work requests, on a mock provider: connected queue pairs, datagrams, alternate paths, mlx5's
 * dynamic connections, and posts outside of verbs.
 */
#include "check.h"
#include "mock_vendors.h"
#include "verbs_fixture.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

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
    mock_refuse(HANDLES / 2, 0);
    CHECK(ibv_post_send(qp, requests, &refused));
    mock_refuse(0, 0);
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

    CHECK(!post(qp, IBV_WR_SEND, 3)); /* not connected: no destination */
    CHECK_ALL();
    CHECK(!connect_qp(qp, 200) && !post(qp, IBV_WR_SEND, 1));
    mock_fail(1);
    CHECK(connect_qp(qp, 201) && ibv_destroy_qp(qp) == EBUSY);
    mock_fail(0);
    CHECK(!post(qp, IBV_WR_SEND, 10));
    CHECK_AMOUNT(recorded(200, IBP_OPCODE_SEND, ANY_REGION), 11, 2);
    CHECK(!connect_qp(qp, 202) && !post(qp, IBV_WR_SEND, 100));
    CHECK_AMOUNT(recorded(200, IBP_OPCODE_SEND, ANY_REGION), 11, 2);
    CHECK_AMOUNT(recorded(202, IBP_OPCODE_SEND, ANY_REGION), 100, 1);
    for (uint16_t i = 0; i < 2000; i++) { /* addresses are reused */
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
    for (int i = 0; i < reader_count(IBP_SEGMENT_PAIRS); i++) {
        const struct ibp_pair *pair = reader_record(IBP_SEGMENT_PAIRS, i);

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
    /* On Ethernet, GIDs identify the ports, and LIDs have no meaning. */
    qp = make_qp(&domain1, IBV_QPT_RC);
    CHECK(!ibv_modify_qp(qp, &far, IBV_QP_AV) && !post(qp, IBV_WR_SEND, 1));
    CHECK(!find_pair(49152));
    pair = reader_record(IBP_SEGMENT_PAIRS, reader_count(IBP_SEGMENT_PAIRS) - 1);
    CHECK(!strcmp(pair->device, "rail1") && !pair->lid && !pair->remote_lid && pair->remote_gid[15] == 9);
    CHECK(pair->gid[10] == 0xff && pair->gid[11] == 0xff && pair->gid[12] == 10 && pair->gid[15] == 1);
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

    CHECK(reader_process()->queue_pairs_unseen == 0);
    CHECK(mlx5dv_create_qp(rail0, &wanted, &target)); /* only receives */
    CHECK(reader_process()->queue_pairs_unseen == 0);
    direct = mlx5dv_create_qp(rail0, &wanted, NULL);
    CHECK(direct && mlx5dv_create_qp(rail0, &wanted, &initiator));
    CHECK(reader_process()->queue_pairs_unseen == 2);
    CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ) && reader_process()->queue_pairs_unseen == 2);
    CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_QP) && !mlx5dv_init_obj(&object, MLX5DV_OBJ_QP));
    CHECK(reader_process()->queue_pairs_unseen == 3);
    CHECK(mlx5dv_devx_obj_create(rail0, command, sizeof command, answer, sizeof answer));
    CHECK(reader_process()->queue_pairs_unseen == 4);
    command[0] = htobe16(0x400); /* CREATE_CQ */
    CHECK(mlx5dv_devx_obj_create(rail0, command, sizeof command, answer, sizeof answer));
    CHECK(reader_process()->queue_pairs_unseen == 4);
    /* After its first post through verbs, a queue pair no longer counts as unseen. */
    CHECK(!connect_qp(plain, 700) && !post(plain, IBV_WR_SEND, 1) && !connect_qp(direct, 700));
    CHECK(!post(direct, IBV_WR_SEND, 1) && !post(direct, IBV_WR_SEND, 1));
    CHECK(reader_process()->queue_pairs_unseen == 2);
    CHECK_AMOUNT(recorded(700, IBP_OPCODE_SEND, ANY_REGION), 3, 3);
}

static void test_queue_pairs_of_other_vendors(void)
{
    struct ibv_qp_init_attr driver = {.qp_type = IBV_QPT_DRIVER};
    struct ibv_qp_init_attr_ex wanted = {.qp_type = IBV_QPT_RC,
                                         .pd = &domain0,
                                         .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                         .send_ops_flags = IBV_QP_EX_WITH_SEND};
    const uint32_t unseen = reader_process()->queue_pairs_unseen;
    struct ibv_qp *hns, *efa, *plain = make_qp(&domain0, IBV_QPT_RC), *other = make_qp(&domain0, IBV_QPT_RC);
    struct manadv_obj mana = {.qp.in = plain};
    struct mlx4dv_obj mlx4 = {.qp.in = other};
    struct ibv_qp_ex *ex;

    CHECK(efadv_create_driver_qp(&domain0, &driver, EFADV_QP_DRIVER_TYPE_SRD));
    efa = efadv_create_qp_ex(rail0, &wanted, NULL, 0);
    hns = hnsdv_create_qp(rail0, &wanted, NULL);
    CHECK(efa && hns && reader_process()->queue_pairs_unseen == unseen + 3);
    CHECK(!manadv_init_obj(&mana, MANADV_OBJ_CQ) && !mlx4dv_init_obj(&mlx4, MLX4DV_OBJ_CQ));
    CHECK(reader_process()->queue_pairs_unseen == unseen + 3);
    CHECK(!manadv_init_obj(&mana, MANADV_OBJ_QP) && !mlx4dv_init_obj(&mlx4, MLX4DV_OBJ_QP));
    CHECK(reader_process()->queue_pairs_unseen == unseen + 5);
    /* After a post by ibv_post_send or by wr_ functions, a queue pair no longer counts as unseen. */
    CHECK(!connect_qp(hns, 710) && !post(hns, IBV_WR_SEND, 3) && !connect_qp(plain, 710) &&
          !post(plain, IBV_WR_SEND, 4));
    CHECK(!connect_qp(efa, 710));
    ex = ibv_qp_to_qp_ex(efa);
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_sge(ex, 0, 0, 5);
    CHECK(!ibv_wr_complete(ex));
    CHECK_AMOUNT(recorded(710, IBP_OPCODE_SEND, ANY_REGION), 12, 3);
    CHECK(reader_process()->queue_pairs_unseen == unseen + 2);
    CHECK_ALL();
}

/* Posts are also recorded with a shared receive queue, and with extended connections (XRC). */
static void test_shared_receive_queues_and_extended_connections(void)
{
    struct ibv_srq queue = {.context = rail0};
    struct ibv_qp_init_attr shared = {.qp_type = IBV_QPT_RC, .srq = &queue}, extended = {.qp_type = IBV_QPT_XRC_SEND};
    struct ibv_qp *qp = ibv_create_qp(&domain0, &shared);

    CHECK(qp && !connect_qp(qp, 800) && !post(qp, IBV_WR_SEND, 5));
    CHECK_AMOUNT(recorded(800, IBP_OPCODE_SEND, ANY_REGION), 5, 1);
    qp = ibv_create_qp(&domain0, &extended);
    CHECK(qp && !connect_qp(qp, 801) && !post(qp, IBV_WR_SEND, 6));
    CHECK_AMOUNT(recorded(801, IBP_OPCODE_SEND, ANY_REGION), 6, 1);
    CHECK_ALL();
}

static void test_alternate_paths(void)
{
    struct ibv_qp_attr other = {.alt_ah_attr = {.dlid = 811, .port_num = 2}, .path_mig_state = IBV_MIG_REARM};
    struct ibv_qp_attr go = {.path_mig_state = IBV_MIG_MIGRATED};
    struct ibv_qp *qp = make_qp(&domain0, IBV_QPT_RC);
    struct ibv_async_event event;

    CHECK(!connect_qp(qp, 810) && !post(qp, IBV_WR_SEND, 1));
    CHECK(!ibv_modify_qp(qp, &go, IBV_QP_PATH_MIG_STATE) && !post(qp, IBV_WR_SEND, 1)); /* there is no alternate path */
    CHECK(!ibv_modify_qp(qp, &other, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE) && !post(qp, IBV_WR_SEND, 1));
    CHECK_AMOUNT(recorded(810, IBP_OPCODE_SEND, ANY_REGION), 3, 3);
    CHECK(!ibv_modify_qp(qp, &go, IBV_QP_PATH_MIG_STATE) && !post(qp, IBV_WR_SEND, 10));
    CHECK_AMOUNT(recorded(811, IBP_OPCODE_SEND, ANY_REGION), 10, 1);
    CHECK(find_pair(811)->port == 2);
    other.alt_ah_attr.dlid = 812; /* the device switches to the alternate path */
    CHECK(!ibv_modify_qp(qp, &other, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE));
    mock_event(qp, IBV_EVENT_COMM_EST);
    CHECK(!ibv_get_async_event(rail0, &event) && !post(qp, IBV_WR_SEND, 20));
    CHECK_AMOUNT(recorded(811, IBP_OPCODE_SEND, ANY_REGION), 30, 2);
    mock_event(qp, IBV_EVENT_PATH_MIG);
    CHECK(!ibv_get_async_event(rail0, &event) && !post(qp, IBV_WR_SEND, 100));
    CHECK_AMOUNT(recorded(812, IBP_OPCODE_SEND, ANY_REGION), 100, 1);
    CHECK_ALL();
}

static void test_dynamic_connections_go_where_each_request_says(void)
{
    struct ibv_qp_init_attr_ex wanted = {.qp_type = IBV_QPT_DRIVER,
                                         .pd = &domain0,
                                         .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                         .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND};
    struct mlx5dv_qp_init_attr initiator = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                            .dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI};
    const uint32_t unseen = reader_process()->queue_pairs_unseen;
    struct ibv_ah_attr paths[2] = {{.dlid = 820, .port_num = 1}, {.dlid = 821, .port_num = 1}};
    struct ibv_ah *handles[2] = {ibv_create_ah(&domain0, &paths[0]), ibv_create_ah(&domain0, &paths[1])};
    struct ibv_qp *qp = mlx5dv_create_qp(rail0, &wanted, &initiator);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *mlx5 = mlx5dv_qp_ex_from_ibv_qp_ex(ex);

    CHECK(mlx5 && mlx5 == mlx5dv_qp_ex_from_ibv_qp_ex(ex));
    CHECK(reader_process()->queue_pairs_unseen == unseen + 1);
    for (int round = 0; round < 2; round++) {
        ibv_wr_start(ex);
        for (int i = 0; i < 2; i++) {
            ibv_wr_rdma_write(ex, 1, 1);
            if (round)
                mlx5dv_wr_set_dc_addr_stream(mlx5, handles[i], 1, 1, 1);
            else
                mlx5dv_wr_set_dc_addr(mlx5, handles[i], 1, 1);
            ibv_wr_set_sge(ex, 0, 0, 10 + (uint32_t)i);
        }
        CHECK(!ibv_wr_complete(ex));
    }
    CHECK_AMOUNT(recorded(820, IBP_OPCODE_WRITE, ANY_REGION), 20, 2);
    CHECK_AMOUNT(recorded(821, IBP_OPCODE_WRITE, ANY_REGION), 22, 2);
    CHECK(mock_dc_addresses() == 4);
    CHECK(reader_process()->queue_pairs_unseen == unseen);
    CHECK_ALL();
}

/* Posts are also recorded on devices that mlx5's own function (used by UCX) or an unknown function has opened. */
static void test_devices_that_are_opened_otherwise(void)
{
    struct mlx5dv_context_attr attributes = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    struct ibv_context *opened[2] = {mlx5dv_open_device(mock_device("rail0"), &attributes),
                                     mock_open(mock_device("rail0"))};

    for (int i = 0; i < 2; i++) {
        struct ibv_pd domain = {.context = opened[i]};
        struct ibv_qp_init_attr_ex wanted = {.qp_type = IBV_QPT_RC,
                                             .pd = &domain,
                                             .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                             .send_ops_flags = IBV_QP_EX_WITH_SEND};
        struct ibv_qp *plain = make_qp(&domain, IBV_QPT_RC), *extended = ibv_create_qp_ex(opened[i], &wanted);
        struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(extended);

        CHECK(!connect_qp(plain, (uint16_t)(830 + i)) && !post(plain, IBV_WR_SEND, 7));
        CHECK_AMOUNT(recorded((uint32_t)(830 + i), IBP_OPCODE_SEND, ANY_REGION), 7, 1);
        CHECK(!connect_qp(extended, (uint16_t)(840 + i)));
        ibv_wr_start(ex);
        ibv_wr_send(ex);
        ibv_wr_set_sge(ex, 0, 0, 70);
        CHECK(!ibv_wr_complete(ex));
        CHECK_AMOUNT(recorded((uint32_t)(840 + i), IBP_OPCODE_SEND, ANY_REGION), 70, 1);
    }
    CHECK_ALL();
}

int main(void)
{
    verbs_begin();
    test_datagrams_go_where_each_one_says();
    test_queue_pairs_come_and_go();
    test_both_ends_of_a_pair();
    test_queue_pairs_that_post_past_verbs_are_counted();
    test_queue_pairs_of_other_vendors();
    test_shared_receive_queues_and_extended_connections();
    test_alternate_paths();
    test_dynamic_connections_go_where_each_request_says();
    test_devices_that_are_opened_otherwise();
    return verbs_end();
}
