/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The transports that this process really uses: its TCP connections, and the devices that it has open.
 */
#ifndef IBPROF_RECORDING_TRANSPORTS_H
#define IBPROF_RECORDING_TRANSPORTS_H

/* Enter them in the recording. To be called when the program is done with MPI and has its connections still. */
void ibp_transports_record(void);

#endif
