/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The verbs source: bytes where work requests are posted to a queue pair, whoever posts them. It runs beside the source that
 * sees an MPI's messages, and its bytes are never added to that one's.
 */
#ifndef IBPROF_SOURCE_VERBS_H
#define IBPROF_SOURCE_VERBS_H

#include "verbs_routes.h"

/* Sees what is posted to queue pairs of a device that was opened. Once more does no harm. */
void ibp_verbs_attach(struct ibp_verbs_context *context);

/* Whether a device was opened. */
bool ibp_verbs_attached(void);

/* The function of that name in libibverbs or mlx5's library; NULL where that is not loaded, or has none. */
void *ibp_verbs_real(const char *name);

/* The hook in place of a device's post_send, and the one before it: that opens the recording, so that the hardware's counters
 * are read before anything is posted. */
int ibp_verbs_post(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests, struct ibp_verbs_send **refused);
int ibp_verbs_post_first(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests, struct ibp_verbs_send **refused);

/* The route of a queue pair, made if it has none; NULL when there is no memory. */
struct ibp_route *ibp_verbs_route(struct ibp_verbs_qp *qp);

/* The provider's own post_send of a device. */
ibp_verbs_post_send *ibp_verbs_original_post(const struct ibp_verbs_context *context);

/* Hooks the wr_ functions of a queue pair that was made with some of them, and those that mlx5 has beside them. */
void ibp_verbs_hook_builders(struct ibp_verbs_qp *qp, uint64_t operations);
void ibp_mlx5_hook_builders(struct ibp_mlx5_qp_ex *mlx5);

#endif
