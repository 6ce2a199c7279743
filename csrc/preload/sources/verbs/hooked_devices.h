/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks of opened devices and new queue pairs: from then on the program's posts pass ibprof.
 */
#ifndef IBPROF_SOURCES_VERBS_HOOKED_DEVICES_H
#define IBPROF_SOURCES_VERBS_HOOKED_DEVICES_H

#include "sources/verbs/abi.h"
#include "sources/verbs/routes.h"

/* Hook a device that was opened. A second call does nothing. */
void ibp_verbs_hook_device(struct ibp_verbs_context *context);

/* Hook a device that was opened by an unknown function. */
void ibp_verbs_see_device(struct ibp_verbs_context *context);

/* Create the route of a new queue pair, in place of a former route at its address. `wanted` has the wr_ functions that
 * the program requested for the queue pair; NULL if there is none. */
void ibp_verbs_enter_qp(struct ibp_verbs_qp *qp, const struct ibp_verbs_qp_init *wanted);

/* Return the route of a queue pair, created if needed; NULL when there is none. */
struct ibp_route *ibp_verbs_route_of_qp(struct ibp_verbs_qp *qp);

/* Note a queue pair; the program may post to it outside of verbs. It counts as unseen until it posts through verbs.
 * NULL for a queue pair that verbs does not know. */
void ibp_verbs_note_direct(struct ibp_verbs_qp *qp);

/* Destroy an object that has a route by calling `next`; return the result. */
int ibp_verbs_destroy(int (*next)(void *), struct ibp_route_table **which, void *object);

#endif
