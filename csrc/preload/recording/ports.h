/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#ifndef IBPROF_RECORDING_PORTS_H
#define IBPROF_RECORDING_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Record the ports of this host's InfiniBand and RoCE devices, from /sys/class/infiniband. The function needs no
 * privilege and no library. */
void ibp_ports_record(void);

/* Return whether this host has InfiniBand or RoCE devices. */
bool ibp_ports_exist(void);

/* ibp_interface_path: write the path of an attribute of a network interface, such as "statistics/tx_bytes". The path is
 * below /sys/class/net, unless IBPROF_SYSFS is set. ibp_interface_read: read the attribute. */
void ibp_interface_path(char *path, size_t bytes, const char *interface, const char *name);
bool ibp_interface_read(const char *interface, const char *name, char *into, size_t bytes);

/* Record a counter of a port. If `port` is 0, `device` is a network interface. */
void ibp_hardware_record(const char *device, unsigned port, const char *name, const char *value);

/* Read all recorded counters of ports and network interfaces again, and record their last values. */
void ibp_ports_read_again(void);

/* Read the present state of a port. A GID or LID that the kernel does not show is 0. */
bool ibp_port_is_ethernet(const char *device, unsigned port);
uint32_t ibp_port_lid(const char *device, unsigned port);
void ibp_port_gid(const char *device, unsigned port, unsigned index, uint8_t gid[16]);

#endif
