/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The cost of a post: `post QUEUE-PAIRS list|built BATCHES` prints ns per post, the minimum and the median of the batches.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POSTS = 4000 };

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int ascending(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

static void post_lists(struct ibv_qp **qps, int count)
{
    struct ibv_sge piece = {.length = 8};
    struct ibv_send_wr request = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *refused;

    for (int i = 0, qp = 0; i < POSTS; i++, qp = qp + 1 == count ? 0 : qp + 1)
        if (ibv_post_send(qps[qp], &request, &refused)) exit(1);
}

static void post_built(struct ibv_qp **qps, int count)
{
    for (int i = 0, qp = 0; i < POSTS; i++, qp = qp + 1 == count ? 0 : qp + 1) {
        struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qps[qp]);

        ibv_wr_start(ex);
        ibv_wr_rdma_write(ex, 1, 1);
        ibv_wr_set_sge(ex, 1, 1, 8);
        if (ibv_wr_complete(ex)) exit(1);
    }
}

int main(int count, char **arguments)
{
    static struct ibv_device device = {.name = "mock0"};
    struct ibv_context *context = ibv_open_device(&device);
    struct ibv_qp_init_attr_ex wanted = {.qp_type = IBV_QPT_RC,
                                         .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                         .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
    const int qp_count = atoi(arguments[1]), batches = atoi(arguments[3]);
    void (*post)(struct ibv_qp **, int) = strcmp(arguments[2], "built") ? post_lists : post_built;
    struct ibv_qp **qps = calloc((size_t)qp_count, sizeof *qps);
    double *times = calloc((size_t)batches, sizeof *times);

    (void)count;
    for (int i = 0; i < qp_count; i++) {
        struct ibv_qp_attr path = {.ah_attr = {.dlid = (uint16_t)(1 + i), .port_num = 1}};

        qps[i] = ibv_create_qp_ex(context, &wanted);
        if (!qps[i] || ibv_modify_qp(qps[i], &path, IBV_QP_AV)) return 1;
    }
    post(qps, qp_count);
    for (int i = 0; i < batches; i++) {
        const double begin = now_ns();

        post(qps, qp_count);
        times[i] = (now_ns() - begin) / POSTS;
    }
    qsort(times, (size_t)batches, sizeof *times, ascending);
    printf("%.3f %.3f\n", times[0], times[batches / 2]);
    return 0;
}
