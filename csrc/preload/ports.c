/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "system.h"
#include "ports.h"
#include "recording.h"
#include "text.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES "/sys/class/infiniband"

/* IBPROF_SYSFS puts another folder in the place of DEVICES, for trials. */
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

/* A GUID or half a GID as sysfs writes it, four digits and a colon at a time. */
static uint64_t parse_guid(const char *text)
{
    char digits[64] = "0x";

    for (; *text; text++)
        if (*text != ':') ibp_text_append(digits, sizeof digits, (char[]){*text, '\0'});
    return ibp_text_number(digits);
}

/* The first number of "100 Gb/sec (4X EDR)", or of "2.5 Gb/sec (1X SDR)". */
static double parse_rate(const char *text)
{
    double rate = (double)ibp_text_number(text);

    text += strspn(text, "0123456789");
    if (text[0] == '.' && text[1] >= '0' && text[1] <= '9') rate += (text[1] - '0') / 10.0;
    return rate;
}

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
    if (read_attribute(device, port, "rate", text, sizeof text)) record->rate_gbps = parse_rate(text);
    read_attribute(device, port, "link_layer", record->link_layer, sizeof record->link_layer);
    if (read_attribute(device, 0, "node_guid", text, sizeof text)) record->node_guid = parse_guid(text);
    record_gids(device, port, record);
    ibp_recording_publish(IBP_SEGMENT_PORTS);
    return true;
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
