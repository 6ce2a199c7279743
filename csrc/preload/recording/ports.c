/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/ports.h"
#include "platform/text.h"
#include "recording/recording.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES "/sys/class/infiniband"
#define HARDWARE_MAX 512

/* Records of hardware counters, with their values at the start. ibp_ports_read_again adds their last values. */
static struct ibp_hardware *hardware[HARDWARE_MAX];
static unsigned hardware_count;

/* Return the folder of devices. For tests, IBPROF_SYSFS names a folder that replaces DEVICES. */
static const char *devices_folder(void)
{
    const char *folder = getenv("IBPROF_SYSFS");

    return folder && *folder ? folder : DEVICES;
}

static bool read_attribute(const char *device, unsigned port, const char *name, char *into, size_t bytes)
{
    char path[1024];

    if (port)
        snprintf(path, sizeof path, "%s/%s/ports/%u/%s", devices_folder(), device, port, name);
    else
        snprintf(path, sizeof path, "%s/%s/%s", devices_folder(), device, name);
    return ibp_text_read_file(path, into, bytes) > 0;
}

/* Parse a GUID, or half of a GID, in the format of sysfs: groups of four hexadecimal digits. */
static uint64_t parse_guid(const char *text)
{
    char digits[64] = "0x";

    for (; *text; text++)
        if (*text != ':') ibp_text_append(digits, sizeof digits, (char[]){*text, '\0'});
    return ibp_text_number(digits);
}

/* Parse a rate such as "100 Gb/sec (4X EDR)" or "2.5 Gb/sec (1X SDR)". */
static double parse_rate(const char *text)
{
    double rate = (double)ibp_text_number(text);

    text += strspn(text, "0123456789");
    if (text[0] == '.' && text[1] >= '0' && text[1] <= '9') rate += (text[1] - '0') / 10.0;
    return rate;
}

bool ibp_port_is_ethernet(const char *device, unsigned port)
{
    char layer[32];

    return read_attribute(device, port, "link_layer", layer, sizeof layer) && !strcmp(layer, "Ethernet");
}

uint32_t ibp_port_lid(const char *device, unsigned port)
{
    char lid[32];

    return read_attribute(device, port, "lid", lid, sizeof lid) ? (uint32_t)ibp_text_number(lid) : 0;
}

void ibp_port_gid(const char *device, unsigned port, unsigned index, uint8_t gid[16])
{
    char name[32], text[64];
    uint64_t halves[2] = {0, 0};

    snprintf(name, sizeof name, "gids/%u", index);
    if (read_attribute(device, port, name, text, sizeof text) && strlen(text) > 20) {
        halves[1] = parse_guid(text + 20);
        text[19] = '\0';
        halves[0] = parse_guid(text);
    }
    for (int byte = 0; byte < 16; byte++) gid[byte] = (uint8_t)(halves[byte / 8] >> (56 - byte % 8 * 8));
}

/* -- hardware counters --------------------------------------------------------------------------------------------- */

/* Files of counters: a port's bytes and packets, and events that slow the port down. The names are those of InfiniBand
 * ports, soft-RoCE and mlx5. */
static const char *const counter_files[] = {
    "counters/port_xmit_data",       "counters/port_rcv_data",
    "counters/port_xmit_packets",    "counters/port_rcv_packets",
    "counters/port_xmit_wait",       "counters/port_xmit_discards",
    "counters/port_rcv_errors",      "counters/symbol_error",
    "counters/link_error_recovery",  "counters/link_downed",
    "hw_counters/sent_pkts",         "hw_counters/rcvd_pkts",
    "hw_counters/duplicate_request", "hw_counters/out_of_seq_request",
    "hw_counters/out_of_sequence",   "hw_counters/packet_seq_err",
    "hw_counters/rnr_nak_retry_err", "hw_counters/np_cnp_sent",
    "hw_counters/rp_cnp_handled",    "hw_counters/local_ack_timeout_err",
};
static const char *const interface_files[] = {"tx_bytes", "rx_bytes", "tx_packets", "rx_packets"};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

void ibp_hardware_record(const char *device, unsigned port, const char *name, const char *value)
{
    struct ibp_hardware *record = ibp_recording_reserve(IBP_SEGMENT_HARDWARE);

    if (!record) return;
    memset(record, 0, sizeof *record);
    ibp_text_copy(record->device, sizeof record->device, device);
    record->port = port;
    ibp_text_copy(record->name, sizeof record->name, base_name(name));
    record->before = ibp_text_number(value);
    if (hardware_count < HARDWARE_MAX) hardware[hardware_count++] = record;
    ibp_recording_publish(IBP_SEGMENT_HARDWARE);
}

void ibp_interface_path(char *path, size_t bytes, const char *interface, const char *name)
{
    const char *devices = ibp_environment("IBPROF_SYSFS");

    snprintf(path, bytes, "%s%s/%s/%s", *devices ? devices : "/sys/class", *devices ? "/../net" : "/net", interface,
             name);
}

bool ibp_interface_read(const char *interface, const char *name, char *into, size_t bytes)
{
    char path[1024];

    ibp_interface_path(path, sizeof path, interface, name);
    return ibp_text_read_file(path, into, bytes) > 0;
}

/* Read a counter of a port's network interface. If `port` is 0, `device` is a network interface. */
static bool read_interface(const char *device, unsigned port, const char *name, char *into, size_t bytes)
{
    char interface[64], file[64];

    if (!port)
        ibp_text_copy(interface, sizeof interface, device);
    else if (!read_attribute(device, port, "gid_attrs/ndevs/0", interface, sizeof interface))
        return false;
    snprintf(file, sizeof file, "statistics/%s", name);
    return ibp_interface_read(interface, file, into, bytes);
}

static void record_counters(const char *device, unsigned port)
{
    char value[64];

    for (size_t i = 0; i < sizeof counter_files / sizeof *counter_files; i++)
        if (read_attribute(device, port, counter_files[i], value, sizeof value))
            ibp_hardware_record(device, port, counter_files[i], value);
    for (size_t i = 0; i < sizeof interface_files / sizeof *interface_files; i++)
        if (read_interface(device, port, interface_files[i], value, sizeof value))
            ibp_hardware_record(device, port, interface_files[i], value);
}

static bool read_counter_again(const struct ibp_hardware *record, char *value, size_t bytes)
{
    for (size_t i = 0; record->port && i < sizeof counter_files / sizeof *counter_files; i++)
        if (!strcmp(base_name(counter_files[i]), record->name))
            return read_attribute(record->device, record->port, counter_files[i], value, bytes);
    return read_interface(record->device, record->port, record->name, value, bytes);
}

void ibp_ports_read_again(void)
{
    char value[64];

    for (unsigned i = 0; i < hardware_count; i++)
        if (read_counter_again(hardware[i], value, sizeof value)) {
            hardware[i]->after = ibp_text_number(value);
            __atomic_store_n(&hardware[i]->read_again, 1, __ATOMIC_RELEASE);
        }
}

/* -- ports --------------------------------------------------------------------------------------------------------- */

static void record_gids(const char *device, unsigned port, struct ibp_port *record)
{
    static const char none[] = "0000:0000:0000:0000:0000:0000:0000:0000";
    unsigned kept = 0;
    char gid[64], name[32];

    for (unsigned index = 0; index < 16 && kept < IBP_GIDS_PER_PORT; index++) {
        snprintf(name, sizeof name, "gids/%u", index);
        if (!read_attribute(device, port, name, gid, sizeof gid)) break;
        if (strcmp(gid, none)) ibp_text_copy(record->gids[kept++], sizeof record->gids[0], gid);
    }
    if (strlen(record->gids[0]) > 20) record->port_guid = parse_guid(record->gids[0] + 20);
}

/* Record the PCI address, the NUMA node, the near cores and the PCIe link of a device. Without a PCI function
 * (soft-RoCE), record no locality. */
static void record_locality(const char *device, struct ibp_port *record)
{
    char path[1024], target[1024], text[32];
    ssize_t length;

    record->numa_node = -1;
    snprintf(path, sizeof path, "%s/%s/device", devices_folder(), device);
    length = readlink(path, target, sizeof target - 1);
    if (length <= 0) return;
    target[length] = '\0';
    ibp_text_copy(record->pci, sizeof record->pci, base_name(target));
    /* The kernel shows -1 if the host has no NUMA nodes. */
    if (read_attribute(device, 0, "device/numa_node", text, sizeof text) && *text != '-')
        record->numa_node = (int32_t)ibp_text_number(text);
    read_attribute(device, 0, "device/local_cpulist", record->near_cores, sizeof record->near_cores);
    if (read_attribute(device, 0, "device/current_link_speed", text, sizeof text)) record->pci_gts = parse_rate(text);
    if (read_attribute(device, 0, "device/max_link_speed", text, sizeof text)) record->pci_gts_max = parse_rate(text);
    if (read_attribute(device, 0, "device/current_link_width", text, sizeof text))
        record->pci_width = (uint32_t)ibp_text_number(text);
    if (read_attribute(device, 0, "device/max_link_width", text, sizeof text))
        record->pci_width_max = (uint32_t)ibp_text_number(text);
}

static bool record_port(const char *device, unsigned port)
{
    struct ibp_port *record;
    char text[128];

    if (!read_attribute(device, port, "state", text, sizeof text)) return false;
    record = ibp_recording_reserve(IBP_SEGMENT_PORTS);
    if (!record) return false;
    memset(record, 0, sizeof *record);
    ibp_text_copy(record->device, sizeof record->device, device);
    record->port = port;
    record->state = (uint32_t)ibp_text_number(text);
    if (read_attribute(device, port, "lid", text, sizeof text)) record->lid = (uint32_t)ibp_text_number(text);
    if (read_attribute(device, port, "lid_mask_count", text, sizeof text))
        record->lmc = (uint32_t)ibp_text_number(text);
    if (read_attribute(device, port, "rate", text, sizeof text)) {
        record->rate_gbps = parse_rate(text);
        record->width = strchr(text, '(') ? (uint32_t)ibp_text_number(strchr(text, '(') + 1) : 0;
    }
    read_attribute(device, port, "link_layer", record->link_layer, sizeof record->link_layer);
    if (read_attribute(device, 0, "node_guid", text, sizeof text)) record->node_guid = parse_guid(text);
    record_gids(device, port, record);
    record_locality(device, record);
    ibp_recording_publish(IBP_SEGMENT_PORTS);
    record_counters(device, port);
    return true;
}

bool ibp_ports_exist(void)
{
    return !access(devices_folder(), R_OK);
}

void ibp_ports_record(void)
{
    DIR *folder = opendir(devices_folder());
    const struct dirent *entry;

    if (!folder) return;
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof((struct ibp_port *)0)->device)
            for (unsigned port = 1; record_port(entry->d_name, port); port++);
    closedir(folder);
}
