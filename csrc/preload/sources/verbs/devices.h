/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Devices that were opened, and the routes of queue pairs on them.
 */
#ifndef IBPROF_SOURCES_VERBS_DEVICES_H
#define IBPROF_SOURCES_VERBS_DEVICES_H

#include "sources/verbs/routes.h"

#include <stdbool.h>

/* The provider's functions of an open device. Devices are few, and their contexts' addresses come again: entries stay. */
struct ibp_verbs_device {
    const struct ibp_verbs_context *context;
    const struct ibp_verbs_provider *provider;
    struct ibp_verbs_qp *(*create_qp_ex)(struct ibp_verbs_context *, void *);
};

/* Whether a device was opened. */
bool ibp_verbs_attached(void);

/* NULL when it is not known. */
struct ibp_verbs_device *ibp_verbs_device_find(const struct ibp_verbs_context *context);

/* Enters a device, or another provider of one that is known; NULL when there are too many. Wants the lock of verbs held. */
struct ibp_verbs_device *ibp_verbs_device_enter(const struct ibp_verbs_context *context,
                                                const struct ibp_verbs_provider *provider);

/* The route of a queue pair, made if it has none; NULL when its device is not known, or there is no memory. */
struct ibp_route *ibp_verbs_route(struct ibp_verbs_qp *qp);

#endif
