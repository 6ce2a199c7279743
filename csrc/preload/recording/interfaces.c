/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/interfaces.h"
#include "platform/text.h"
#include "recording/ports.h"
#include "recording/recording.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Maximum number of recorded interfaces. Hosts of containers may have hundreds of virtual interfaces. */
#define INTERFACES_MAX 32

static const char *const statistics[] = {"tx_bytes", "rx_bytes", "tx_errors", "rx_errors", "tx_dropped", "rx_dropped"};

static int32_t read_number(const char *interface, const char *name, int32_t unknown)
{
    char text[64];

    /* For a link that is down, or an interface of a virtual machine, the kernel shows -1 or an error. */
    if (!ibp_interface_read(interface, name, text, sizeof text) || *text == '-') return unknown;
    return (int32_t)ibp_text_number(text);
}

static bool has_attribute(const char *interface, const char *name)
{
    char path[1024];

    ibp_interface_path(path, sizeof path, interface, name);
    return !access(path, F_OK);
}

/* Find the InfiniBand or RoCE device to which an interface belongs. */
static void find_device(const char *interface, char *into, size_t bytes)
{
    const struct dirent *entry;
    char path[1024];
    DIR *folder;

    ibp_interface_path(path, sizeof path, interface, "device/infiniband");
    folder = opendir(path);
    if (!folder) return;
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.') ibp_text_copy(into, bytes, entry->d_name);
    closedir(folder);
}

static void record_interface(const char *name)
{
    struct ibp_interface *record = ibp_recording_reserve(IBP_SEGMENT_INTERFACES);
    char text[64];

    if (!record) return;
    memset(record, 0, sizeof *record);
    ibp_text_copy(record->name, sizeof record->name, name);
    record->type = (uint32_t)read_number(name, "type", 0);
    record->mtu = (uint32_t)read_number(name, "mtu", 0);
    record->speed_mbps = read_number(name, "speed", -1);
    record->numa_node = read_number(name, "device/numa_node", -1);
    record->is_physical = has_attribute(name, "device") || has_attribute(name, "bonding");
    if (ibp_interface_read(name, "operstate", text, sizeof text)) record->is_up = !!strcmp(text, "down");
    find_device(name, record->device, sizeof record->device);
    ibp_recording_publish(IBP_SEGMENT_INTERFACES);
    for (size_t i = 0; i < sizeof statistics / sizeof *statistics; i++) {
        char file[64];

        snprintf(file, sizeof file, "statistics/%s", statistics[i]);
        if (ibp_interface_read(name, file, text, sizeof text)) ibp_hardware_record(name, 0, statistics[i], text);
    }
}

void ibp_interfaces_record(void)
{
    const struct dirent *entry;
    unsigned interfaces = 0;
    char path[1024];
    DIR *folder;

    ibp_interface_path(path, sizeof path, "", "");
    folder = opendir(path);
    if (!folder) return;
    while (interfaces < INTERFACES_MAX && (entry = readdir(folder)))
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof((struct ibp_interface *)0)->name &&
            has_attribute(entry->d_name, "mtu")) {
            record_interface(entry->d_name);
            interfaces++;
        }
    closedir(folder);
}
