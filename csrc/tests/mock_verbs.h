/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A mock provider of verbs, which sends nothing and counts accepted requests. ibprof must record exactly these
 * requests. Built as libibverbs.so.1 with that library's real headers and symbol versions.
 */
#ifndef IBPROF_MOCK_VERBS_H
#define IBPROF_MOCK_VERBS_H

#include <infiniband/verbs.h>

struct mock_device {
    struct ibv_device device;
    struct verbs_context context;
};

struct ibv_device *mock_device(const char *name);

/* Refuse the n-th request of each post from now on (n from 1). With n = 0, accept all requests. If `silently` is not 0,
 * the post does not report which request it refused. */
void mock_refuse(int nth, int silently);

/* From now on, calls that modify or destroy objects fail if `fails` is not 0, and succeed if it is 0. */
void mock_fail(int fails);

/* Write the accepted bytes and messages of all queue pairs, summed by kind of request: send, write, read, atomic. */
void mock_accepted(uint64_t bytes[4], uint64_t messages[4]);

/* Open a device without ibv_open_device, as a driver's own function does. */
struct ibv_context *mock_open(struct ibv_device *device);

/* Create a queue pair without ibv_create_qp_ex, as a driver's own function does. */
struct ibv_qp *mock_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *wanted);

/* Set the next asynchronous event that a device reports. */
void mock_event(struct ibv_qp *qp, enum ibv_event_type type);

/* Return the number of requests with the address of a dynamic connection. */
int mock_dc_addresses(void);

#endif
