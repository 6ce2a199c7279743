/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The members of UCX's structs, and the constants, that ibprof uses.
 *
 * Source: ucp.h of UCX 1.12 and later, whose binary interface is stable.
 */
#ifndef IBPROF_SOURCES_MPICH_UCX_ABI_H
#define IBPROF_SOURCES_MPICH_UCX_ABI_H

#include <stddef.h>
#include <stdint.h>

#define IBP_UCX_OK 0
#define IBP_UCX_HAS_REMOTE_ADDRESS 1
#define IBP_UCX_HAS_DATATYPE (1 << 3)
#define IBP_UCX_HAS_UID 1

enum {
    IBP_UCX_DATATYPE_CLASS_MASK = 7,
    IBP_UCX_DATATYPE_SHIFT = 3,
    IBP_UCX_CONTIGUOUS = 0,
    IBP_UCX_IOV = 2,
    IBP_UCX_GENERIC = 7
};

struct ibp_ucx_endpoint_parameters {
    uint64_t fields;
    const void *address;
};

struct ibp_ucx_request_parameters {
    uint32_t fields, flags;
    void *request;
    void *callback;
    uint64_t datatype;
};

struct ibp_ucx_iov {
    void *buffer;
    size_t bytes;
};

struct ibp_ucx_address_attributes {
    uint64_t fields, uid;
};

struct ibp_ucx_generic_operations {
    void *(*start_pack)(void *, const void *, size_t);
    void *(*start_unpack)(void *, void *, size_t);
    size_t (*packed_size)(void *);
    size_t (*pack)(void *, size_t, void *, size_t);
    int (*unpack)(void *, size_t, const void *, size_t);
    void (*finish)(void *);
};

#endif
