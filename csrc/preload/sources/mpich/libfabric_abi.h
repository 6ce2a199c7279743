/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The members of libfabric's objects that ibprof uses. Each object has tables of functions. The first word of a table
 * is its size in bytes. Source: fabric.h, fi_domain.h, fi_endpoint.h, fi_tagged.h, fi_rma.h and fi_atomic.h. The
 * offsets have not changed since version 1.0 of libfabric's binary interface. Pointers that ibprof only passes on are
 * `void *`.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_ABI_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct ibp_fi_object {
    size_t class;
    void *context;
    struct ibp_fi_object_table *table;
};

struct ibp_fi_object_table {
    size_t bytes;
    void *close, *bind;
    int (*control)(struct ibp_fi_object *, int, void *);
};

struct ibp_fi_fabric {
    struct ibp_fi_object object;
    struct ibp_fi_fabric_table *table;
};

struct ibp_fi_domain {
    struct ibp_fi_object object;
    struct ibp_fi_domain_table *table;
    struct ibp_fi_registration_table *registrations;
};

struct ibp_fi_av { /* an address vector */
    struct ibp_fi_object object;
    struct ibp_fi_av_table *table;
};

struct ibp_fi_endpoint {
    struct ibp_fi_object object;
    struct ibp_fi_endpoint_table *table;
    struct ibp_fi_connection_table *connection;
    struct ibp_fi_message_table *messages;
    struct ibp_fi_memory_table *memory;
    struct ibp_fi_tagged_table *tagged;
    struct ibp_fi_atomic_table *atomics;
};

struct ibp_fi_fabric_table {
    size_t bytes;
    int (*domain)(struct ibp_fi_fabric *, void *, struct ibp_fi_domain **, void *);
};

typedef int ibp_fi_open_endpoint(struct ibp_fi_domain *, void *, struct ibp_fi_endpoint **, void *);
struct ibp_fi_domain_table {
    size_t bytes;
    int (*av_open)(struct ibp_fi_domain *, void *, struct ibp_fi_av **, void *);
    void *cq_open;
    ibp_fi_open_endpoint *endpoint, *scalable_endpoint;
};

struct ibp_fi_registration_table {
    size_t bytes;
    int (*one)(struct ibp_fi_domain *, const void *, size_t, uint64_t, uint64_t, uint64_t, uint64_t, void *, void *);
};

struct ibp_fi_av_table {
    size_t bytes;
    void *insert, *insert_service, *insert_symmetric;
    int (*remove)(struct ibp_fi_av *, uint64_t *, size_t, uint64_t);
    int (*lookup)(struct ibp_fi_av *, uint64_t, void *, size_t *);
};

struct ibp_fi_endpoint_table {
    size_t bytes;
    void *cancel, *get_option, *set_option;
    int (*transmit_context)(struct ibp_fi_endpoint *, int, void *, struct ibp_fi_endpoint **, void *);
};

struct ibp_fi_connection_table {
    size_t bytes;
    void *set_name;
    int (*get_name)(struct ibp_fi_object *, void *, size_t *);
};

struct ibp_fi_message {
    const struct iovec *parts;
    void **descriptors;
    size_t count;
    uint64_t peer;
};

static inline size_t ibp_fi_bytes_of(const struct iovec *parts, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) bytes += parts[i].iov_len;
    return bytes;
}

struct ibp_fi_tagged_message {
    const struct iovec *parts;
    void **descriptors;
    size_t count;
    uint64_t peer, tag;
};

struct ibp_fi_message_table {
    size_t bytes;
    void *receive, *receive_parts, *receive_message;
    ssize_t (*send)(struct ibp_fi_endpoint *, const void *, size_t, void *, uint64_t, void *);
    ssize_t (*send_parts)(struct ibp_fi_endpoint *, const struct iovec *, void **, size_t, uint64_t, void *);
    ssize_t (*send_message)(struct ibp_fi_endpoint *, const struct ibp_fi_message *, uint64_t);
    ssize_t (*inject)(struct ibp_fi_endpoint *, const void *, size_t, uint64_t);
    ssize_t (*send_data)(struct ibp_fi_endpoint *, const void *, size_t, void *, uint64_t, uint64_t, void *);
    ssize_t (*inject_data)(struct ibp_fi_endpoint *, const void *, size_t, uint64_t, uint64_t);
};

struct ibp_fi_tagged_table {
    size_t bytes;
    void *receive, *receive_parts, *receive_message;
    ssize_t (*send)(struct ibp_fi_endpoint *, const void *, size_t, void *, uint64_t, uint64_t, void *);
    ssize_t (*send_parts)(struct ibp_fi_endpoint *, const struct iovec *, void **, size_t, uint64_t, uint64_t, void *);
    ssize_t (*send_message)(struct ibp_fi_endpoint *, const struct ibp_fi_tagged_message *, uint64_t);
    ssize_t (*inject)(struct ibp_fi_endpoint *, const void *, size_t, uint64_t, uint64_t);
    ssize_t (*send_data)(struct ibp_fi_endpoint *, const void *, size_t, void *, uint64_t, uint64_t, uint64_t, void *);
    ssize_t (*inject_data)(struct ibp_fi_endpoint *, const void *, size_t, uint64_t, uint64_t, uint64_t);
};

struct ibp_fi_memory_table {
    size_t bytes;
    ssize_t (*read)(struct ibp_fi_endpoint *, void *, size_t, void *, uint64_t, uint64_t, uint64_t, void *);
    ssize_t (*read_parts)(struct ibp_fi_endpoint *, const struct iovec *, void **, size_t, uint64_t, uint64_t, uint64_t,
                          void *);
    ssize_t (*read_message)(struct ibp_fi_endpoint *, const struct ibp_fi_message *, uint64_t);
    ssize_t (*write)(struct ibp_fi_endpoint *, const void *, size_t, void *, uint64_t, uint64_t, uint64_t, void *);
    ssize_t (*write_parts)(struct ibp_fi_endpoint *, const struct iovec *, void **, size_t, uint64_t, uint64_t,
                           uint64_t, void *);
    ssize_t (*write_message)(struct ibp_fi_endpoint *, const struct ibp_fi_message *, uint64_t);
    ssize_t (*inject)(struct ibp_fi_endpoint *, const void *, size_t, uint64_t, uint64_t, uint64_t);
    ssize_t (*write_data)(struct ibp_fi_endpoint *, const void *, size_t, void *, uint64_t, uint64_t, uint64_t,
                          uint64_t, void *);
    ssize_t (*inject_data)(struct ibp_fi_endpoint *, const void *, size_t, uint64_t, uint64_t, uint64_t, uint64_t);
};

struct ibp_fi_items {
    void *place;
    size_t count;
};

struct ibp_fi_atomic_message {
    const struct ibp_fi_items *parts;
    void **descriptors;
    size_t count;
    uint64_t peer;
    const void *places;
    size_t place_count;
    int type, operation;
};

struct ibp_fi_atomic_table {
    size_t bytes;
    ssize_t (*write)(struct ibp_fi_endpoint *, const void *, size_t, void *, uint64_t, uint64_t, uint64_t, int, int,
                     void *);
    ssize_t (*write_parts)(struct ibp_fi_endpoint *, const struct ibp_fi_items *, void **, size_t, uint64_t, uint64_t,
                           uint64_t, int, int, void *);
    ssize_t (*write_message)(struct ibp_fi_endpoint *, const struct ibp_fi_atomic_message *, uint64_t);
    ssize_t (*inject)(struct ibp_fi_endpoint *, const void *, size_t, uint64_t, uint64_t, uint64_t, int, int);
    ssize_t (*fetch)(struct ibp_fi_endpoint *, const void *, size_t, void *, void *, void *, uint64_t, uint64_t,
                     uint64_t, int, int, void *);
    ssize_t (*fetch_parts)(struct ibp_fi_endpoint *, const struct ibp_fi_items *, void **, size_t,
                           struct ibp_fi_items *, void **, size_t, uint64_t, uint64_t, uint64_t, int, int, void *);
    ssize_t (*fetch_message)(struct ibp_fi_endpoint *, const struct ibp_fi_atomic_message *, struct ibp_fi_items *,
                             void **, size_t, uint64_t);
    ssize_t (*compare)(struct ibp_fi_endpoint *, const void *, size_t, void *, const void *, void *, void *, void *,
                       uint64_t, uint64_t, uint64_t, int, int, void *);
    ssize_t (*compare_parts)(struct ibp_fi_endpoint *, const struct ibp_fi_items *, void **, size_t,
                             const struct ibp_fi_items *, void **, size_t, struct ibp_fi_items *, void **, size_t,
                             uint64_t, uint64_t, uint64_t, int, int, void *);
    ssize_t (*compare_message)(struct ibp_fi_endpoint *, const struct ibp_fi_atomic_message *,
                               const struct ibp_fi_items *, void **, size_t, struct ibp_fi_items *, void **, size_t,
                               uint64_t);
};

#endif
