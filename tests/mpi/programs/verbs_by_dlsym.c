/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Posts 10 requests of 1,234 bytes to LID 77 by functions that it looks up in libibverbs.
 *
 *     verbs_by_dlsym dlsym|dlvsym
 */
#include "mock_verbs.h"

#include <dlfcn.h>
#include <string.h>

static void *library;
static int by_version;

static void get(const char *name, void *into)
{
    void *found = by_version ? dlvsym(library, name, "IBVERBS_1.1") : dlsym(library, name);

    memcpy(into, &found, sizeof found);
}

int main(int count, char **arguments)
{
    struct ibv_context *(*open_device)(struct ibv_device *);
    struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
    int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
    struct ibv_device *(*make_device)(const char *);
    struct ibv_qp_attr path = {.ah_attr = {.dlid = 77, .port_num = 1}, .port_num = 1};
    struct ibv_qp_init_attr wanted = {.qp_type = IBV_QPT_RC};
    struct ibv_sge piece = {.length = 1234};
    struct ibv_send_wr request = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *refused;
    struct ibv_pd domain;
    struct ibv_qp *qp;

    library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    by_version = count > 1 && !strcmp(arguments[1], "dlvsym");
    if (!library || dlsym(library, "ibv_no_such_function")) return 2;
    get("ibv_open_device", &open_device);
    get("ibv_create_qp", &create_qp);
    get("ibv_modify_qp", &modify_qp);
    get("mock_device", &make_device);
    domain.context = open_device(make_device("mock0"));
    qp = create_qp(&domain, &wanted);
    if (modify_qp(qp, &path, IBV_QP_PORT | IBV_QP_AV)) return 3;
    for (int i = 0; i < 10; i++)
        if (ibv_post_send(qp, &request, &refused)) return 4;
    return 0;
}
