/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The transports that this process uses: its TCP connections and open devices.
 */
#ifndef IBPROF_RECORDING_TRANSPORTS_H
#define IBPROF_RECORDING_TRANSPORTS_H

/* Record the transports. Call this function after the program's last MPI message, while MPI's connections are still
 * open. */
void ibp_transports_record(void);

#endif
