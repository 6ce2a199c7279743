/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Open devices, and the routes of queue pairs on them.
 */
#ifndef IBPROF_SOURCES_VERBS_DEVICES_H
#define IBPROF_SOURCES_VERBS_DEVICES_H

#include "sources/verbs/routes.h"

#include <stdbool.h>

/* The provider's functions of an open device. Entries are never removed: devices are few, and the addresses of their
 * contexts are reused. */
struct ibp_verbs_device {
    const struct ibp_verbs_context *context;
    const struct ibp_verbs_provider *provider;
    struct ibp_verbs_qp *(*create_qp_ex)(struct ibp_verbs_context *, void *);
};

/* Return whether a device was opened. */
bool ibp_verbs_attached(void);

/* Return the entry of a device; NULL when it is unknown. */
struct ibp_verbs_device *ibp_verbs_device_find(const struct ibp_verbs_context *context);

/* Enter a device, or another provider of a known device; NULL if the table is full. The lock of verbs must be
 * held. */
struct ibp_verbs_device *ibp_verbs_device_enter(const struct ibp_verbs_context *context,
                                                const struct ibp_verbs_provider *provider);

/* Return the route of a queue pair, created if needed; NULL without memory, or when its device is unknown. */
struct ibp_route *ibp_verbs_route(struct ibp_verbs_qp *qp);

#endif
