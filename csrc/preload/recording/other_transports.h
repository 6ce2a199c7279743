/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Libraries of this process that move data by other means than the messages of its MPI, by their names.
 */
#ifndef IBPROF_RECORDING_OTHER_TRANSPORTS_H
#define IBPROF_RECORDING_OTHER_TRANSPORTS_H

#include <stddef.h>

/* Append what each loaded library may move unseen: sentences `NAME is loaded: ...`, each followed by a newline. */
void ibp_other_transports_describe(char *notes, size_t bytes);

#endif
