/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A provider of verbs that carries nothing and counts everything: what it accepted is what must be recorded. Built as
 * libibverbs.so.1 with that library's real headers and versions of symbols.
 */
#ifndef IBPROF_MADE_UP_VERBS_H
#define IBPROF_MADE_UP_VERBS_H

#include <infiniband/verbs.h>

struct mock_device {
    struct ibv_device device;
    struct verbs_context context;
};

/* A device of a name, to be opened. */
struct ibv_device *mock_device(const char *name);

/* From now on each post is refused at its n-th request (from 1); 0: all are accepted. A silent refusal names no request. */
void mock_refuse(int nth, int silently);

/* From now on modifying, and destroying, fails. */
void mock_fail(int fails);

/* Bytes and messages that were accepted, over all queue pairs, by the kind of request: sent, written, read, atomic. */
void mock_accepted(uint64_t bytes[4], uint64_t messages[4]);

/* Opens a device as a driver's own function does, past ibv_open_device. */
struct ibv_context *mock_open(struct ibv_device *device);

/* A queue pair as a driver's own function makes it, past ibv_create_qp_ex. */
struct ibv_qp *mock_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *wanted);

/* The next event of any device. */
void mock_event(struct ibv_qp *qp, enum ibv_event_type type);

/* How often a request was given the address of a dynamic connection. */
int mock_dc_addresses(void);

#endif
