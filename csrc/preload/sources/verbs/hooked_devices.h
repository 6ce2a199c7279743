/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks of open devices and new queue pairs. All posts to hooked queue pairs pass through ibprof.
 */
#ifndef IBPROF_SOURCES_VERBS_HOOKED_DEVICES_H
#define IBPROF_SOURCES_VERBS_HOOKED_DEVICES_H

#include "sources/verbs/abi.h"
#include "sources/verbs/routes.h"

/* Hook a device that was opened. A second call does nothing. */
void ibp_verbs_hook_device(struct ibp_verbs_context *context);

/* Hook a device that the program opened by a function that ibprof does not hook. */
void ibp_verbs_see_device(struct ibp_verbs_context *context);

/* Create the route of a new queue pair; a former route at its address is forgotten. `wanted`: the wr_ functions that
 * the program requested; NULL if there are none. */
void ibp_verbs_enter_qp(struct ibp_verbs_qp *qp, const struct ibp_verbs_qp_init *wanted);

/* Return the route of a queue pair, created if needed; NULL if that is not possible. */
struct ibp_route *ibp_verbs_route_of_qp(struct ibp_verbs_qp *qp);

/* The program may post to this queue pair directly, without verbs. Count it as unseen until the program posts to it
 * through verbs. `qp` is NULL if verbs does not know the queue pair. */
void ibp_verbs_note_direct(struct ibp_verbs_qp *qp);

/* Destroy an object and its route. `next` destroys the object; return its result. */
int ibp_verbs_destroy(int (*next)(void *), struct ibp_route_table **which, void *object);

#endif
