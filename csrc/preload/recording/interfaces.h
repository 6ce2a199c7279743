/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The network interfaces of this host, as the kernel shows them under /sys/class/net.
 */
#ifndef IBPROF_RECORDING_INTERFACES_H
#define IBPROF_RECORDING_INTERFACES_H

/* Record the network interfaces of this host and their counters. No privilege is needed. */
void ibp_interfaces_record(void);

#endif
