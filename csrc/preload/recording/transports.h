/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The transports in use: TCP connections of this process, and its open devices.
 */
#ifndef IBPROF_RECORDING_TRANSPORTS_H
#define IBPROF_RECORDING_TRANSPORTS_H

/* Enter the transports in the recording. To be called when the program has finished MPI communication and its
 * connections are still open. */
void ibp_transports_record(void);

#endif
