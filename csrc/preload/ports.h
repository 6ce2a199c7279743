/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#ifndef IBPROF_PORTS_H
#define IBPROF_PORTS_H

/* Enters the ports of this host's InfiniBand and RoCE devices in the recording, as the kernel shows them under
 * /sys/class/infiniband. Needs no privilege and no library; does nothing where there are none. */
void ibp_ports_record(void);

#endif
