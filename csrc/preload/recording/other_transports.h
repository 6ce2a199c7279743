/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Libraries of this process, found by name, that move data without messages of its MPI.
 */
#ifndef IBPROF_RECORDING_OTHER_TRANSPORTS_H
#define IBPROF_RECORDING_OTHER_TRANSPORTS_H

#include <stddef.h>

/* Append the data that each loaded library may move unseen: sentences `NAME is loaded: ...`, each followed by a
 * newline. */
void ibp_other_transports_describe(char *notes, size_t bytes);

#endif
