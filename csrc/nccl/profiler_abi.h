/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * All published versions of the profiler interface of NCCL and RCCL. The declarations follow NCCL's documentation;
 * scripts/check-nccl-layout.py compares them with NCCL's headers. docs/formats/nccl-profiler.md lists versions,
 * releases and offsets. Members that ibprof does not read are declared too, because the next plug-in reads them.
 *
 * Releases differ in members at the end of events: NCCL 2.32 adds `user_tag`, RCCL adds members to the proxy operation.
 * This file declares the members that all releases of a version have. Further members are not needed,
 * because ibprof copies no event.
 */
#ifndef IBPROF_NCCL_PROFILER_ABI_H
#define IBPROF_NCCL_PROFILER_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Types of events: bits of the mask of events that a plug-in requests. */
enum ibp_nccl_event_type {
    IBP_NCCL_GROUP = 1 << 0,
    IBP_NCCL_COLL = 1 << 1,
    IBP_NCCL_P2P = 1 << 2,
    IBP_NCCL_PROXY_OP = 1 << 3,
    IBP_NCCL_PROXY_STEP = 1 << 4,
    IBP_NCCL_PROXY_CTRL = 1 << 5,
    IBP_NCCL_KERNEL_CH = 1 << 6,  /* since version 3 */
    IBP_NCCL_NET_PLUGIN = 1 << 7, /* since version 3 */
    IBP_NCCL_GROUP_API = 1 << 8,  /* this and all following types: since version 5 */
    IBP_NCCL_COLL_API = 1 << 9,
    IBP_NCCL_P2P_API = 1 << 10,
    IBP_NCCL_KERNEL_LAUNCH = 1 << 11,
    IBP_NCCL_CE_COLL = 1 << 12 /* since version 6 */
};

/* States that ibprof uses. 0 to 7 are states of proxy operations in versions 1 to 3. */
enum ibp_nccl_state {
    IBP_NCCL_LAST_OPERATION_STATE = 7,
    IBP_NCCL_SEND_GPU_WAIT = 8,
    IBP_NCCL_SEND_WAIT = 9,
    IBP_NCCL_RECV_WAIT = 10,
    IBP_NCCL_RECV_FLUSH_WAIT = 11,
    IBP_NCCL_RECV_GPU_WAIT = 12,
    IBP_NCCL_IN_PROGRESS = 19,   /* since version 4 */
    IBP_NCCL_SEND_PEER_WAIT = 20 /* since version 4 */
};

struct ibp_nccl_proxy_op {
    pid_t pid;
    uint8_t channel;
    int peer, steps, chunk_bytes, is_send;
};

struct ibp_nccl_proxy_step {
    int step;
};

struct ibp_nccl_net_plugin {
    int64_t id;
    void *data;
};

/* -- versions 1 to 4 ----------------------------------------------------------------------------------------------- */

struct ibp_nccl_event_1 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t communicator, sequence;
            uint8_t function;
            const void *send_buffer;
            void *receive_buffer;
            size_t count;
            int root;
            uint8_t datatype;
            uint32_t reduction;
            size_t traffic_bytes;
            uint8_t channels, warps, algorithm, protocol;
            int is_collnet, is_nvls;
        } coll;
        struct {
            const char *name;
            uint64_t communicator;
            uint8_t function;
            void *buffer;
            uint8_t datatype;
            size_t count;
            int peer;
        } p2p;
        struct ibp_nccl_proxy_op proxy_op;
        struct ibp_nccl_proxy_step proxy_step;
    };
};

struct ibp_nccl_event_2 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t communicator, sequence;
            const char *function;
            const void *send_buffer;
            void *receive_buffer;
            size_t count;
            int root;
            const char *datatype;
            size_t traffic_bytes;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
        } coll;
        struct {
            const char *name;
            uint64_t communicator;
            const char *function;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
        } p2p;
        struct ibp_nccl_proxy_op proxy_op;
        struct ibp_nccl_proxy_step proxy_step;
    };
};

struct ibp_nccl_event_3 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t communicator, sequence;
            const char *function;
            const void *send_buffer;
            void *receive_buffer;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
        } coll;
        struct {
            const char *name;
            uint64_t communicator;
            const char *function;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
        } p2p;
        struct ibp_nccl_proxy_op proxy_op;
        struct ibp_nccl_proxy_step proxy_step;
        struct {
            uint8_t channel;
        } kernel_ch;
        struct ibp_nccl_net_plugin net_plugin;
    };
};

struct ibp_nccl_event_4 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            uint64_t sequence;
            const char *function;
            const void *send_buffer;
            void *receive_buffer;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
        } coll;
        struct {
            const char *function;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
        } p2p;
        struct ibp_nccl_proxy_op proxy_op;
        struct ibp_nccl_proxy_step proxy_step;
        struct {
            uint8_t channel;
            uint64_t gpu_timer;
        } kernel_ch;
        struct ibp_nccl_net_plugin net_plugin;
    };
};

/* -- versions 5 to 7 ----------------------------------------------------------------------------------------------- */

struct ibp_nccl_event_5 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct {
            bool is_captured;
            int depth;
        } group_api;
        struct {
            const char *function;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool is_captured;
        } coll_api;
        struct {
            const char *function;
            size_t count;
            const char *datatype;
            void *stream;
            bool is_captured;
        } p2p_api;
        struct {
            void *stream;
        } kernel_launch;
        struct {
            uint64_t sequence;
            const char *function;
            const void *send_buffer;
            void *receive_buffer;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
            void *parent_group;
        } coll;
        struct {
            const char *function;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
            void *parent_group;
        } p2p;
        struct ibp_nccl_proxy_op proxy_op;
        struct ibp_nccl_proxy_step proxy_step;
        struct {
            uint8_t channel;
            uint64_t gpu_timer;
        } kernel_ch;
        struct ibp_nccl_net_plugin net_plugin;
    };
};

/* Version 6 adds events of copy engines. Version 7 adds phases of kernels, and members at the end of `coll`. */

/* -- states, network events, functions ----------------------------------------------------------------------------- */

/* Arguments of a state. In versions 1 to 3, the bytes of a proxy operation are the sum so far. */
union ibp_nccl_state_arguments {
    struct {
        size_t bytes;
        int steps;
    } proxy_op_of_3;
    struct {
        size_t bytes;
    } proxy_step;
};

/* The type of `net_plugin.data` for InfiniBand. In the lower 32 bits of the id, the upper 16 bits are IBP_NCCL_NET_IB
 * and the lower 16 bits are 1. */
#define IBP_NCCL_NET_IB 1
struct ibp_nccl_net_ib_1 {
    uint8_t type;
    struct {
        int device;
        uint64_t work_request;
        int opcode, queue_pair;
        size_t bytes;
    } qp;
};

typedef int ibp_nccl_start_function(void *context, void **handle, void *event);
typedef int ibp_nccl_stop_function(void *handle);
typedef int ibp_nccl_record_function(void *handle, int state, void *arguments);
typedef int ibp_nccl_finalize_function(void *context);
typedef void ibp_nccl_logger(int level, unsigned long flags, const char *file, int line, const char *format, ...);

typedef int ibp_nccl_init_1(void **context, int *mask);
typedef int ibp_nccl_init_4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks, int rank,
                            ibp_nccl_logger *logger);
typedef int ibp_nccl_init_5(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks, int rank,
                            ibp_nccl_logger *logger);

/* A plug-in exports one such struct for each version, under the names ncclProfiler_v1, ncclProfiler_v2 and so on. */
struct ibp_nccl_profiler {
    const char *name;
    union {
        ibp_nccl_init_1 *init_1; /* versions 1 to 3 */
        ibp_nccl_init_4 *init_4;
        ibp_nccl_init_5 *init_5; /* versions 5 to 7 */
    };
    ibp_nccl_start_function *start;
    ibp_nccl_stop_function *stop;
    ibp_nccl_record_function *record;
    ibp_nccl_finalize_function *finalize;
};

#define IBP_NCCL_OLDEST 1
#define IBP_NCCL_NEWEST 7

/* -- layouts on 64-bit hosts --------------------------------------------------------------------------------------- */

#define IBP_NCCL_AT(version, member, offset)                                                                           \
    _Static_assert(offsetof(struct ibp_nccl_event_##version, member) == (offset), "as NCCL lays it out")
#define IBP_NCCL_HEAD_AT(version)                                                                                      \
    IBP_NCCL_AT(version, type, 0);                                                                                     \
    IBP_NCCL_AT(version, parent, 8);                                                                                   \
    IBP_NCCL_AT(version, rank, 16);                                                                                    \
    IBP_NCCL_AT(version, proxy_op.pid, 24);                                                                            \
    IBP_NCCL_AT(version, proxy_op.channel, 28);                                                                        \
    IBP_NCCL_AT(version, proxy_op.peer, 32);                                                                           \
    IBP_NCCL_AT(version, proxy_op.steps, 36);                                                                          \
    IBP_NCCL_AT(version, proxy_op.chunk_bytes, 40);                                                                    \
    IBP_NCCL_AT(version, proxy_op.is_send, 44);                                                                        \
    IBP_NCCL_AT(version, proxy_step.step, 24)
IBP_NCCL_HEAD_AT(1);
IBP_NCCL_HEAD_AT(2);
IBP_NCCL_HEAD_AT(3);
IBP_NCCL_HEAD_AT(4);
IBP_NCCL_HEAD_AT(5);
IBP_NCCL_AT(1, coll.communicator, 32);
IBP_NCCL_AT(1, coll.function, 48);
IBP_NCCL_AT(1, coll.count, 72);
IBP_NCCL_AT(1, coll.datatype, 84);
IBP_NCCL_AT(1, coll.traffic_bytes, 96);
IBP_NCCL_AT(1, coll.channels, 104);
IBP_NCCL_AT(1, coll.algorithm, 106);
IBP_NCCL_AT(1, coll.protocol, 107);
IBP_NCCL_AT(1, coll.is_nvls, 112);
IBP_NCCL_AT(1, p2p.datatype, 56);
IBP_NCCL_AT(1, p2p.count, 64);
IBP_NCCL_AT(2, coll.function, 48);
IBP_NCCL_AT(2, coll.count, 72);
IBP_NCCL_AT(2, coll.datatype, 88);
IBP_NCCL_AT(2, coll.channels, 104);
IBP_NCCL_AT(2, coll.algorithm, 112);
IBP_NCCL_AT(2, p2p.count, 64);
IBP_NCCL_AT(3, coll.channels, 96);
IBP_NCCL_AT(3, coll.algorithm, 104);
IBP_NCCL_AT(3, p2p.count, 64);
IBP_NCCL_AT(3, net_plugin.data, 32);
IBP_NCCL_AT(4, coll.function, 32);
IBP_NCCL_AT(4, coll.count, 56);
IBP_NCCL_AT(4, coll.datatype, 72);
IBP_NCCL_AT(4, coll.channels, 80);
IBP_NCCL_AT(4, coll.algorithm, 88);
IBP_NCCL_AT(4, coll.protocol, 96);
IBP_NCCL_AT(4, p2p.count, 48);
IBP_NCCL_AT(4, p2p.channels, 60);
IBP_NCCL_AT(4, net_plugin.data, 32);
IBP_NCCL_AT(5, coll.function, 32);
IBP_NCCL_AT(5, coll.count, 56);
IBP_NCCL_AT(5, coll.datatype, 72);
IBP_NCCL_AT(5, coll.channels, 80);
IBP_NCCL_AT(5, coll.algorithm, 88);
IBP_NCCL_AT(5, coll.protocol, 96);
IBP_NCCL_AT(5, coll.parent_group, 104);
IBP_NCCL_AT(5, p2p.count, 48);
IBP_NCCL_AT(5, p2p.channels, 60);
IBP_NCCL_AT(5, p2p.parent_group, 64);
IBP_NCCL_AT(5, net_plugin.data, 32);
_Static_assert(sizeof(struct ibp_nccl_profiler) == 48, "six pointers");

#endif
