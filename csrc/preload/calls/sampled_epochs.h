/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samples of the calls that begin and end epochs on the processes of a group: MPI_Win_post, start, complete and wait.
 * Both processes of a pair give their epochs the same numbers. A post permits an access epoch; a completion ends the
 * wait for it.
 */
#ifndef IBPROF_CALLS_SAMPLED_EPOCHS_H
#define IBPROF_CALLS_SAMPLED_EPOCHS_H

#include "calls/sampled_calls.h"
#include "libmpi/library.h"

#include <stdint.h>

/* Return when an epoch call is entered; 0 for other calls, and without samples. Note the end of the call, if it
 * succeeded. */
uint64_t ibp_epoch_begin(unsigned operation);
void ibp_epoch_end(uint64_t enter_ns, const struct ibp_called *called);

/* Forget a window that is freed. The lock must be held. */
void ibp_epochs_forget(ibp_handle window);

#endif
