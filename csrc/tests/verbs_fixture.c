/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "verbs_fixture.h"
#include "check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ibv_context *rail0, *rail1;
struct ibv_pd domain0, domain1;

/* -- recorded amounts ---------------------------------------------------------------------------------------------- */

struct amount recorded(uint32_t remote_lid, int opcode, int region)
{
    struct amount sum = {0, 0};

    for (int i = 0; i < reader_count(IBP_SEGMENT_TRANSFERS); i++) {
        const struct ibp_transfer *transfer = reader_record(IBP_SEGMENT_TRANSFERS, i);
        const struct ibp_pair *pair = reader_record(IBP_SEGMENT_PAIRS, (int)transfer->pair);
        const bool all = transfer->region == IBP_REGION_ALL;
        uint64_t sign = 0;

        if ((remote_lid && pair->remote_lid != remote_lid) || (int)transfer->opcode != opcode) continue;
        if (region == ANY_REGION)
            sign = all;
        else if (region == (int)reader_process()->transfers_region)
            sign = all ? 1 : transfer->region == (uint32_t)region ? 0 : UINT64_MAX;
        else
            sign = transfer->region == (uint32_t)region;
        sum.bytes += sign * transfer->bytes;
        sum.messages += sign * transfer->messages;
    }
    return sum;
}

void check_amount(int line, struct amount found, uint64_t bytes, uint64_t messages)
{
    if (found.bytes == bytes && found.messages == messages) return;
    fprintf(stderr, "line %d: %llu bytes in %llu messages, not %llu in %llu\n", line, (unsigned long long)found.bytes,
            (unsigned long long)found.messages, (unsigned long long)bytes, (unsigned long long)messages);
    exit(1);
}

void check_all(int line)
{
    uint64_t bytes[4], messages[4];

    mock_accepted(bytes, messages);
    for (int opcode = 0; opcode < 4; opcode++)
        check_amount(line, recorded(0, opcode, ANY_REGION), bytes[opcode], messages[opcode]);
}

/* -- posting ------------------------------------------------------------------------------------------------------- */

struct ibv_qp *make_qp(struct ibv_pd *domain, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr wanted = {.qp_type = type};
    struct ibv_qp *qp = ibv_create_qp(domain, &wanted);

    CHECK(qp);
    return qp;
}

struct ibv_qp *make_extended_qp(enum ibv_qp_type type)
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

int connect_qp(struct ibv_qp *qp, uint16_t lid)
{
    struct ibv_qp_attr own = {.port_num = 1}, there = {.ah_attr = {.dlid = lid, .port_num = 1}};

    return ibv_modify_qp(qp, &own, IBV_QP_STATE | IBV_QP_PORT) || ibv_modify_qp(qp, &there, IBV_QP_STATE | IBV_QP_AV);
}

int post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t bytes)
{
    struct ibv_sge pieces[2] = {{.length = bytes / 2}, {.length = bytes - bytes / 2}};
    struct ibv_send_wr request = {.sg_list = pieces, .num_sge = 2, .opcode = opcode}, *refused;

    return ibv_post_send(qp, &request, &refused);
}

/* -- begin and end of a test --------------------------------------------------------------------------------------- */

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

void verbs_begin(void)
{
    const char *folder = make_test_folder();
    char output[400];

    make_devices(folder);
    snprintf(output, sizeof output, "%s/recording", folder);
    setenv("IBPROF_OUTPUT", output, 1);
    rail0 = ibv_open_device(mock_device("rail0"));
    rail1 = ibv_open_device(mock_device("rail1"));
    CHECK(rail0 && rail1);
    domain0.context = rail0;
    domain1.context = rail1;
    CHECK(!ibv_destroy_qp(make_qp(&domain0, IBV_QPT_RC)));
    CHECK(access(output, F_OK)); /* nothing was posted yet, so nothing is recorded */
    CHECK(!post(make_qp(&domain0, IBV_QPT_RC), IBV_WR_SEND, 1));
    reader_open(output);
}

int verbs_end(void)
{
    CHECK_ALL();
    CHECK(reader_process()->world_size == 0 && !reader_process()->transfers_lost_messages);
    return 0;
}
