/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * How the job was started, as far as it names the job's hosts: a profile can then list hosts that left no recording.
 */
#ifndef IBPROF_RECORDING_LAUNCH_H
#define IBPROF_RECORDING_LAUNCH_H

/* Record the batch system's lists of hosts, and the command line of the launcher among this process's ancestors. */
void ibp_launch_record(void);

#endif
