/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Libraries in this process that can move data without MPI messages. Such a library is recognised by its name.
 */
#ifndef IBPROF_RECORDING_OTHER_TRANSPORTS_H
#define IBPROF_RECORDING_OTHER_TRANSPORTS_H

#include <stddef.h>

/* For each loaded library that can move data without MPI messages, append a line `NAME is loaded: ...` to `notes`. The
 * line names the data that ibprof may miss. */
void ibp_other_transports_describe(char *notes, size_t bytes);

#endif
