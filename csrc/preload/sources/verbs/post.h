/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks of ibv_post_send, which posts a list of work requests.
 */
#ifndef IBPROF_SOURCES_VERBS_POST_H
#define IBPROF_SOURCES_VERBS_POST_H

#include "sources/verbs/abi.h"

/* Hooks of a device's post_send. ibp_verbs_post_first is the hook for the first post. This hook opens the recording,
 * and so reads hardware counters before the post. */
int ibp_verbs_post(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests, struct ibp_verbs_send **refused);
int ibp_verbs_post_first(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests, struct ibp_verbs_send **refused);

#endif
