/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Compares ibprof's view of libibverbs' binary interface with the real headers, at compile time.
 */
#include "sources/verbs/abi.h"

#include <infiniband/mlx4dv.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#define SAME(own, own_field, header, header_field)                                                                     \
    _Static_assert(offsetof(struct own, own_field) == offsetof(struct header, header_field),                           \
                   #own "." #own_field " lies where " #header "." #header_field " does");                              \
    _Static_assert(sizeof(((struct own *)0)->own_field) == sizeof(((struct header *)0)->header_field),                 \
                   #own "." #own_field " is as large as " #header "." #header_field)
#define EQUAL(own, header) _Static_assert((int)(own) == (int)(header), #own " is " #header)

_Static_assert(offsetof(struct ibv_device, name) == IBP_VERBS_DEVICE_NAME_OFFSET, "a device's name");
SAME(ibp_verbs_context, device, ibv_context, device);
SAME(ibp_verbs_context, post_send, ibv_context, ops.post_send);
SAME(ibp_verbs_context, compatibility, ibv_context, abi_compat);
_Static_assert(sizeof(struct ibp_verbs_context) == sizeof(struct ibv_context), "a context");
#define FROM_END(type, field) (sizeof(struct type) - offsetof(struct type, field))
_Static_assert(FROM_END(ibp_verbs_extended, create_qp_ex) == FROM_END(verbs_context, create_qp_ex), "create_qp_ex");
_Static_assert(FROM_END(ibp_verbs_extended, bytes) == FROM_END(verbs_context, sz), "the size of an extended context");
_Static_assert(FROM_END(ibp_verbs_extended, context) == FROM_END(verbs_context, context), "the context in it");
SAME(ibp_verbs_object, context, ibv_pd, context);
SAME(ibp_verbs_object, context, ibv_ah, context);
SAME(ibp_verbs_qp, context, ibv_qp, context);
SAME(ibp_verbs_qp, type, ibv_qp, qp_type);
_Static_assert(sizeof(struct ibp_verbs_qp) == sizeof(struct ibv_qp), "a queue pair");
SAME(ibp_verbs_sge, address, ibv_sge, addr);
SAME(ibp_verbs_sge, length, ibv_sge, length);
SAME(ibp_verbs_buffer, length, ibv_data_buf, length);
SAME(ibp_verbs_send, next, ibv_send_wr, next);
SAME(ibp_verbs_send, pieces, ibv_send_wr, sg_list);
SAME(ibp_verbs_send, piece_count, ibv_send_wr, num_sge);
SAME(ibp_verbs_send, request, ibv_send_wr, opcode);
SAME(ibp_verbs_send, address_handle, ibv_send_wr, wr.ud.ah);
SAME(ibp_verbs_path, remote_gid, ibv_ah_attr, grh.dgid);
SAME(ibp_verbs_path, gid_index, ibv_ah_attr, grh.sgid_index);
SAME(ibp_verbs_path, remote_lid, ibv_ah_attr, dlid);
SAME(ibp_verbs_path, path_bits, ibv_ah_attr, src_path_bits);
SAME(ibp_verbs_path, is_global, ibv_ah_attr, is_global);
SAME(ibp_verbs_path, port, ibv_ah_attr, port_num);
_Static_assert(sizeof(struct ibp_verbs_path) == sizeof(struct ibv_ah_attr), "a path");
SAME(ibp_verbs_qp_attributes, path, ibv_qp_attr, ah_attr);
SAME(ibp_verbs_qp_attributes, alternate_path, ibv_qp_attr, alt_ah_attr);
SAME(ibp_verbs_qp_attributes, port, ibv_qp_attr, port_num);
SAME(ibp_verbs_qp_init, fields, ibv_qp_init_attr_ex, comp_mask);
SAME(ibp_verbs_qp_init, send_operations, ibv_qp_init_attr_ex, send_ops_flags);
SAME(ibp_verbs_qp_ex, qp, ibv_qp_ex, qp_base);
#define BUILDER(own, header) SAME(ibp_verbs_qp_ex, builders.own, ibv_qp_ex, header)
BUILDER(atomic_cmp_swp, wr_atomic_cmp_swp);
BUILDER(atomic_fetch_add, wr_atomic_fetch_add);
BUILDER(bind_mw, wr_bind_mw);
BUILDER(local_inv, wr_local_inv);
BUILDER(rdma_read, wr_rdma_read);
BUILDER(rdma_write, wr_rdma_write);
BUILDER(rdma_write_imm, wr_rdma_write_imm);
BUILDER(send, wr_send);
BUILDER(send_imm, wr_send_imm);
BUILDER(send_inv, wr_send_inv);
BUILDER(send_tso, wr_send_tso);
BUILDER(set_ud_addr, wr_set_ud_addr);
BUILDER(set_xrc_srqn, wr_set_xrc_srqn);
BUILDER(set_inline_data, wr_set_inline_data);
BUILDER(set_inline_data_list, wr_set_inline_data_list);
BUILDER(set_sge, wr_set_sge);
BUILDER(set_sge_list, wr_set_sge_list);
BUILDER(start, wr_start);
BUILDER(complete, wr_complete);
BUILDER(abort, wr_abort);
SAME(ibp_verbs_qp_attributes, migration, ibv_qp_attr, path_mig_state);
SAME(ibp_verbs_event, qp, ibv_async_event, element.qp);
SAME(ibp_verbs_event, event, ibv_async_event, event_type);
SAME(ibp_mlx5_qp_ex, builders.set_dc_addr, mlx5dv_qp_ex, wr_set_dc_addr);
SAME(ibp_mlx5_qp_ex, builders.set_dc_addr_stream, mlx5dv_qp_ex, wr_set_dc_addr_stream);
SAME(ibp_verbs_vendor_object, qp, mlx5dv_obj, qp.in);
SAME(ibp_verbs_vendor_object, qp, mlx4dv_obj, qp.in);
SAME(ibp_mlx5_qp_init, fields, mlx5dv_qp_init_attr, comp_mask);
SAME(ibp_mlx5_qp_init, dc_type, mlx5dv_qp_init_attr, dc_init_attr.dc_type);

EQUAL(IBP_VERBS_ATTR_PORT, IBV_QP_PORT);
EQUAL(IBP_VERBS_ATTR_AV, IBV_QP_AV);
EQUAL(IBP_VERBS_ATTR_ALT_PATH, IBV_QP_ALT_PATH);
EQUAL(IBP_VERBS_ATTR_MIGRATION, IBV_QP_PATH_MIG_STATE);
EQUAL(IBP_VERBS_MIGRATED, IBV_MIG_MIGRATED);
EQUAL(IBP_VERBS_EVENT_MIGRATED, IBV_EVENT_PATH_MIG);
EQUAL(IBP_VERBS_TYPE_UD, IBV_QPT_UD);
EQUAL(IBP_VERBS_TYPE_DRIVER, IBV_QPT_DRIVER);
EQUAL(IBP_VERBS_INIT_SEND_OPS, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
EQUAL(IBP_VERBS_RDMA_WRITE, IBV_WR_RDMA_WRITE);
EQUAL(IBP_VERBS_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
EQUAL(IBP_VERBS_SEND, IBV_WR_SEND);
EQUAL(IBP_VERBS_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM);
EQUAL(IBP_VERBS_RDMA_READ, IBV_WR_RDMA_READ);
EQUAL(IBP_VERBS_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP);
EQUAL(IBP_VERBS_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
EQUAL(IBP_VERBS_LOCAL_INV, IBV_WR_LOCAL_INV);
EQUAL(IBP_VERBS_BIND_MW, IBV_WR_BIND_MW);
EQUAL(IBP_VERBS_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);
EQUAL(IBP_VERBS_TSO, IBV_WR_TSO);
EQUAL(IBP_VERBS_DRIVER1, IBV_WR_DRIVER1);
EQUAL(IBP_VERBS_VENDOR_OBJECT_QP, MLX5DV_OBJ_QP);
EQUAL(IBP_VERBS_VENDOR_OBJECT_QP, MLX4DV_OBJ_QP);
EQUAL(IBP_MLX5_INIT_DC, MLX5DV_QP_INIT_ATTR_MASK_DC);
EQUAL(IBP_MLX5_DC_TARGET, MLX5DV_DCTYPE_DCT);

#if __has_include(<infiniband/manadv.h>) /* rdma-core 44 and newer */
#include <infiniband/manadv.h>
SAME(ibp_verbs_vendor_object, qp, manadv_obj, qp.in);
EQUAL(IBP_VERBS_VENDOR_OBJECT_QP, MANADV_OBJ_QP);
#endif

int main(void)
{
    return 0;
}
