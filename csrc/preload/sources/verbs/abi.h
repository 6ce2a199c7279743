/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The structs and constants of libibverbs (IBVERBS_1.1 and later) that ibprof reads or changes. With these
 * declarations, libibprof.so needs neither the headers nor the library. csrc/tests/test_verbs_abi.c compares every
 * offset with the real headers.
 */
#ifndef IBPROF_SOURCES_VERBS_ABI_H
#define IBPROF_SOURCES_VERBS_ABI_H

#include <stddef.h>
#include <stdint.h>

#define IBP_VERBS_DEVICE_NAME_OFFSET 24

/* enum ibv_qp_attr_mask, ibv_mig_state, ibv_event_type, ibv_qp_type, ibv_qp_init_attr_mask, ibv_qp_create_send_ops_flags */
#define IBP_VERBS_ATTR_PORT (1 << 5)
#define IBP_VERBS_ATTR_AV (1 << 7)
#define IBP_VERBS_ATTR_ALT_PATH (1 << 14)
#define IBP_VERBS_ATTR_MIGRATION (1 << 18)
#define IBP_VERBS_MIGRATED 0
#define IBP_VERBS_EVENT_MIGRATED 6
#define IBP_VERBS_TYPE_UD 4
/* mlx5's dynamic connections and EFA's reliable datagrams; each request has an address handle. */
#define IBP_VERBS_TYPE_DRIVER 0xff
#define IBP_VERBS_INIT_SEND_OPS (1 << 6)

/* enum ibv_wr_opcode */
enum ibp_verbs_request {
    IBP_VERBS_RDMA_WRITE = 0,
    IBP_VERBS_RDMA_WRITE_WITH_IMM = 1,
    IBP_VERBS_SEND = 2,
    IBP_VERBS_SEND_WITH_IMM = 3,
    IBP_VERBS_RDMA_READ = 4,
    IBP_VERBS_ATOMIC_CMP_AND_SWP = 5,
    IBP_VERBS_ATOMIC_FETCH_AND_ADD = 6,
    IBP_VERBS_LOCAL_INV = 7,
    IBP_VERBS_BIND_MW = 8,
    IBP_VERBS_SEND_WITH_INV = 9,
    IBP_VERBS_TSO = 10,
    IBP_VERBS_DRIVER1 = 11,
    IBP_VERBS_ATOMIC_WRITE = 15,
    IBP_VERBS_REQUESTS = 16
};

/* struct ibv_sge, ibv_data_buf */
struct ibp_verbs_sge {
    uint64_t address;
    uint32_t length;
    uint32_t key;
};

struct ibp_verbs_buffer {
    void *address;
    size_t length;
};

/* the first members of struct ibv_send_wr */
struct ibp_verbs_send {
    uint64_t id;
    struct ibp_verbs_send *next;
    struct ibp_verbs_sge *pieces;
    int piece_count;
    uint32_t request; /* enum ibp_verbs_request */
    uint32_t flags;
    uint32_t immediate;
    /* Valid only on unreliable datagram queue pairs. */
    void *address_handle;
};

struct ibp_verbs_context;
struct ibp_verbs_qp;
typedef int ibp_verbs_post_send(struct ibp_verbs_qp *, struct ibp_verbs_send *, struct ibp_verbs_send **);

/* struct ibv_context, with its table of functions */
struct ibp_verbs_context {
    void *device;
    void *operations_before_post_send[25];
    ibp_verbs_post_send *post_send;
    void *operations_after_post_send[6];
    int command_file, async_file, completion_vectors;
    _Alignas(8) char mutex[40];
    /* All bits are 1 if this struct is the last member of a struct verbs_context. */
    void *compatibility;
};

/* The last members of struct verbs_context. New versions of libibverbs add members at the beginning of struct
 * verbs_context. `bytes`: size of the whole struct. */
struct ibp_verbs_extended {
    struct ibp_verbs_qp *(*create_qp_ex)(struct ibp_verbs_context *, void *);
    void *fields_before_size[5];
    size_t bytes;
    struct ibp_verbs_context context;
};

/* the first member of struct ibv_pd and struct ibv_ah */
struct ibp_verbs_object {
    struct ibp_verbs_context *context;
};

/* struct ibv_qp */
struct ibp_verbs_qp {
    struct ibp_verbs_context *context;
    void *user_context, *pd, *send_cq, *recv_cq, *srq;
    uint32_t handle, number;
    uint32_t state, type;
    _Alignas(8) char mutex_and_condition[88];
    uint32_t events_completed;
};

/* struct ibv_ah_attr */
struct ibp_verbs_path {
    uint8_t remote_gid[16];
    uint32_t flow_label;
    uint8_t gid_index, hop_limit, traffic_class;
    uint16_t remote_lid;
    uint8_t service_level, path_bits, static_rate;
    /* The GIDs are valid. */
    uint8_t is_global;
    uint8_t port;
};

/* the first members of struct ibv_qp_attr, up to the port */
struct ibp_verbs_qp_attributes {
    uint32_t before_migration[3];
    uint32_t migration; /* enum ibv_mig_state */
    uint32_t before_path[10];
    _Alignas(8) struct ibp_verbs_path path;
    _Alignas(8) struct ibp_verbs_path alternate_path;
    uint16_t key_index, alternate_key_index;
    uint8_t before_port[5];
    uint8_t port;
};

/* struct ibv_async_event */
struct ibp_verbs_event {
    struct ibp_verbs_qp *qp;
    uint32_t event; /* enum ibv_event_type */
};

/* the first members of struct ibv_qp_init_attr_ex; the last member contains a bit for each wr_ function that the
 * program requests */
struct ibp_verbs_qp_init {
    void *user_context, *send_cq, *recv_cq, *srq;
    uint32_t limits[5];
    uint32_t type;
    int signal_all;
    /* Each bit marks that one of the following members is valid. */
    uint32_t fields;
    void *between[8];
    uint64_t send_operations;
};

/* struct ibv_qp_ex; `builders` contains the function pointers in libibverbs' order */
struct ibp_verbs_qp_ex {
    struct ibp_verbs_qp qp;
    uint64_t fields;
    uint64_t id;
    uint32_t flags;
    struct ibp_verbs_builders {
        void (*atomic_cmp_swp)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t, uint64_t, uint64_t);
        void (*atomic_fetch_add)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t, uint64_t);
        void (*bind_mw)(struct ibp_verbs_qp_ex *, void *, uint32_t, const void *);
        void (*local_inv)(struct ibp_verbs_qp_ex *, uint32_t);
        void (*rdma_read)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t);
        void (*rdma_write)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t);
        void (*rdma_write_imm)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t, uint32_t);
        void (*send)(struct ibp_verbs_qp_ex *);
        void (*send_imm)(struct ibp_verbs_qp_ex *, uint32_t);
        void (*send_inv)(struct ibp_verbs_qp_ex *, uint32_t);
        void (*send_tso)(struct ibp_verbs_qp_ex *, void *, uint16_t, uint16_t);
        void (*set_ud_addr)(struct ibp_verbs_qp_ex *, void *, uint32_t, uint32_t);
        void (*set_xrc_srqn)(struct ibp_verbs_qp_ex *, uint32_t);
        void (*set_inline_data)(struct ibp_verbs_qp_ex *, void *, size_t);
        void (*set_inline_data_list)(struct ibp_verbs_qp_ex *, size_t, const struct ibp_verbs_buffer *);
        void (*set_sge)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t, uint32_t);
        void (*set_sge_list)(struct ibp_verbs_qp_ex *, size_t, const struct ibp_verbs_sge *);
        void (*start)(struct ibp_verbs_qp_ex *);
        int (*complete)(struct ibp_verbs_qp_ex *);
        void (*abort)(struct ibp_verbs_qp_ex *);
    } builders;
    /* Valid only if the queue pair was created with IBP_VERBS_WITH_ATOMIC_WRITE. */
    void (*atomic_write)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t, const void *);
};
#define IBP_VERBS_WITH_ATOMIC_WRITE (1 << 12)

/* The members of struct mlx5dv_obj, mlx4dv_obj and manadv_obj that ibprof reads */
#define IBP_VERBS_VENDOR_OBJECT_QP 1

struct ibp_verbs_vendor_object {
    struct ibp_verbs_qp *qp;
};

/* Constants of mlx5dv.h for struct mlx5dv_qp_init_attr, and an opcode of a device command */
#define IBP_MLX5_INIT_DC (1 << 1)
#define IBP_MLX5_DC_TARGET 1
#define IBP_MLX5_COMMAND_CREATE_QP 0x500

/* struct mlx5dv_qp_ex; ibprof replaces two of its function pointers */
struct ibp_mlx5_qp_ex {
    uint64_t fields;
    struct ibp_mlx5_builders {
        void (*set_dc_addr)(struct ibp_mlx5_qp_ex *, void *, uint32_t, uint64_t);
        void *between[8];
        void (*set_dc_addr_stream)(struct ibp_mlx5_qp_ex *, void *, uint32_t, uint64_t, uint16_t);
    } builders;
};

struct ibp_mlx5_qp_init {
    uint64_t fields;
    uint32_t create_flags;
    _Alignas(8) uint32_t dc_type;
};

#endif
