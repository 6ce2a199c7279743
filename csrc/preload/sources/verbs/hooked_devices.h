/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks of open devices and new queue pairs. All posts to hooked queue pairs pass through ibprof.
 */
#ifndef IBPROF_SOURCES_VERBS_HOOKED_DEVICES_H
#define IBPROF_SOURCES_VERBS_HOOKED_DEVICES_H

#include "sources/verbs/abi.h"
#include "sources/verbs/routes.h"

/* Hook an open device. A second call for the device does nothing. */
void ibp_verbs_hook_device(struct ibp_verbs_context *context);

/* Hook a device if the program opened the device by a function without a hook. */
void ibp_verbs_see_device(struct ibp_verbs_context *context);

/* Create the route of a new queue pair, and forget a former route at its address. `wanted`: the attributes that name
 * the wr_ functions which the program requested; NULL if the program requested none. */
void ibp_verbs_enter_qp(struct ibp_verbs_qp *qp, const struct ibp_verbs_qp_init *wanted);

/* Return the route of a queue pair, created if needed; NULL if memory is exhausted or the device cannot be hooked. */
struct ibp_route *ibp_verbs_route_of_qp(struct ibp_verbs_qp *qp);

/* The program may post to a queue pair directly, without verbs. Count the queue pair as unseen until the program posts
 * to the queue pair through verbs. `qp` is NULL if verbs does not know the queue pair. */
void ibp_verbs_note_direct(struct ibp_verbs_qp *qp);

/* Destroy a queue pair or address handle, and its route. `next`: the real function, which destroys the object. Return
 * its result. */
int ibp_verbs_destroy(int (*next)(void *), struct ibp_route_table **which, void *object);

#endif
