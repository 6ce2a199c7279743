/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Posting lists of work requests: ibv_post_send.
 */
#ifndef IBPROF_SOURCES_VERBS_POST_H
#define IBPROF_SOURCES_VERBS_POST_H

#include "sources/verbs/abi.h"

/* The hooks of a device's post_send. The first post goes to ibp_verbs_post_first, which opens the recording, so that
 * the hardware's counters are read before. */
int ibp_verbs_post(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests, struct ibp_verbs_send **refused);
int ibp_verbs_post_first(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests, struct ibp_verbs_send **refused);

#endif
