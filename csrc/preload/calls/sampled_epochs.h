/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samples of MPI_Win_post, MPI_Win_start, MPI_Win_complete and MPI_Win_wait, which begin and end epochs with the
 * processes of a group. Origin and target assign the same number to an epoch, so they sample the same calls. These
 * calls wait for other processes, as a receive waits for a send: MPI_Win_start or MPI_Win_complete waits for
 * MPI_Win_post of the target, and MPI_Win_wait waits for MPI_Win_complete of the origin.
 */
#ifndef IBPROF_CALLS_SAMPLED_EPOCHS_H
#define IBPROF_CALLS_SAMPLED_EPOCHS_H

#include "calls/sampled_calls.h"
#include "libmpi/library.h"

#include <stdint.h>

/* ibp_epoch_begin: before a call that begins or ends an epoch, return the present time. Return 0 for other calls, and
 * while no samples are taken. ibp_epoch_end: after the call has succeeded, record its samples. */
uint64_t ibp_epoch_begin(unsigned operation);
void ibp_epoch_end(uint64_t enter_ns, const struct ibp_called *called);

/* Forget a window that is freed. The lock must be held. */
void ibp_epochs_forget(ibp_handle window);

#endif
