/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The devices that the program has opened, and the routes of queue pairs on these devices.
 */
#ifndef IBPROF_SOURCES_VERBS_DEVICES_H
#define IBPROF_SOURCES_VERBS_DEVICES_H

#include "sources/verbs/routes.h"

#include <stdbool.h>

/* An open device and its provider's functions. Entries are never removed, because there are few devices and the
 * addresses of their contexts are reused. */
struct ibp_verbs_device {
    const struct ibp_verbs_context *context;
    const struct ibp_verbs_provider *provider;
    struct ibp_verbs_qp *(*create_qp_ex)(struct ibp_verbs_context *, void *);
};

/* Return whether the program has opened a device. */
bool ibp_verbs_attached(void);

struct ibp_verbs_device *ibp_verbs_device_find(const struct ibp_verbs_context *context);

/* Add a device to the table, or set the provider of a device in the table. Return NULL if the table is full. The verbs
 * lock must be held. */
struct ibp_verbs_device *ibp_verbs_device_enter(const struct ibp_verbs_context *context,
                                                const struct ibp_verbs_provider *provider);

/* Return the route of a queue pair, created if needed; NULL if memory is exhausted or the device is unknown. */
struct ibp_route *ibp_verbs_route(struct ibp_verbs_qp *qp);

#endif
