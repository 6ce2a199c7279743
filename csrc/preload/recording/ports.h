/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#ifndef IBPROF_RECORDING_PORTS_H
#define IBPROF_RECORDING_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enter the ports of this host's InfiniBand and RoCE devices in the recording, as the kernel shows them under
 * /sys/class/infiniband. Needs no privilege and no library; does nothing where there are none. */
void ibp_ports_record(void);

/* Return whether this host has InfiniBand or RoCE devices. */
bool ibp_ports_exist(void);

/* Find an attribute of a network interface, such as "statistics/tx_bytes", or read it. Without IBPROF_SYSFS it is under
 * /sys/class/net. */
void ibp_interface_path(char *path, size_t bytes, const char *interface, const char *name);
bool ibp_interface_read(const char *interface, const char *name, char *into, size_t bytes);

/* Enter a counter of a port in the recording; port 0 is the interface that `device` names. */
void ibp_hardware_record(const char *device, unsigned port, const char *name, const char *value);

/* Read all these counters again. The ports carried the increase since ibp_ports_record. */
void ibp_ports_read_again(void);

/* Read the present state of a port. The GID is all zeros and the LID is 0 where the kernel shows none. */
bool ibp_port_is_ethernet(const char *device, unsigned port);
uint32_t ibp_port_lid(const char *device, unsigned port);
void ibp_port_gid(const char *device, unsigned port, unsigned index, uint8_t gid[16]);

#endif
