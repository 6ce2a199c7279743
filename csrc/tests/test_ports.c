/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * With a mock /sys/class/infiniband of a host with an InfiniBand and an Ethernet port.
 */
#include "platform/system.h"
#include "check.h"
#include "recording/adapter_choice.h"
#include "recording/ports.h"
#include "recording/recording.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char devices[300];

static void put(const char *name, const char *text)
{
    char path[900];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", devices, name);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    CHECK(file && fprintf(file, "%s\n", text) > 0 && !fclose(file));
}

/* Read the first segment of a kind. */
static void read_segment(const char *path, enum ibp_segment_kind kind, char *page)
{
    const struct ibp_segment *segment = (const void *)page;
    const int file = open(path, O_RDONLY);

    CHECK(file >= 0);
    do CHECK(read(file, page, IBP_PAGE_BYTES) == IBP_PAGE_BYTES);
    while (segment->magic != IBP_SEGMENT_MAGIC || segment->kind != kind);
    close(file);
}

/* Cores of this process as sched_getaffinity has them, as a list that names each. */
static void own_cores(char *into, size_t bytes)
{
    cpu_set_t cores;

    CHECK(!sched_getaffinity(0, sizeof cores, &cores));
    *into = '\0';
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &cores))
            snprintf(into + strlen(into), bytes - strlen(into), "%s%d", *into ? "," : "", core);
}

/* Write a list as 0-2,5 with each core named. */
static void expand(const char *list, char *into, size_t bytes)
{
    *into = '\0';
    while (*list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;

        if (*end == '-') last = strtol(end + 1, &end, 10);
        for (; first <= last; first++)
            snprintf(into + strlen(into), bytes - strlen(into), "%s%ld", *into ? "," : "", first);
        list = *end == ',' ? end + 1 : end;
    }
}

static void check_choices(const char *path)
{
    char page[IBP_PAGE_BYTES], cores[4096], expanded[4096];
    const struct ibp_choice *choice = (const void *)(page + sizeof(struct ibp_segment));

    read_segment(path, IBP_SEGMENT_CHOICES, page);
    CHECK(((const struct ibp_segment *)page)->used == 2);
    own_cores(cores, sizeof cores);
    expand(choice[0].text, expanded, sizeof expanded);
    CHECK(!strcmp(choice[0].name, "cores") && !strcmp(expanded, cores));
    CHECK(!strcmp(choice[1].name, "UCX_NET_DEVICES") && !strcmp(choice[1].text, "mlx5_0:1"));
}

int main(void)
{
    const char *folder = make_test_folder();
    const struct ibp_port *port;
    char why[256], path[700];
    const struct dirent *entry;
    char page[IBP_PAGE_BYTES];
    bool found[2] = {false, false};
    DIR *opened;

    snprintf(devices, sizeof devices, "%s/sysfs", folder);
    put("mlx5_0/node_guid", "506b:4b03:00fa:0290");
    put("mlx5_0/ports/1/state", "4: ACTIVE");
    put("mlx5_0/ports/1/lid", "0x2a");
    put("mlx5_0/ports/1/lid_mask_count", "1");
    put("mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)");
    put("mlx5_0/ports/1/link_layer", "InfiniBand");
    put("mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:506b:4b03:00fa:0291");
    put("mlx5_0/ports/1/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000");
    /* A device links to its PCI function. */
    put("../pci0000:3a/0000:3b:00.1/numa_node", "1");
    put("../pci0000:3a/0000:3b:00.1/local_cpulist", "16-31,48-63");
    snprintf(path, sizeof path, "%s/mlx5_0/device", devices);
    CHECK(!symlink("../../pci0000:3a/0000:3b:00.1", path));
    put("rxe0/node_guid", "0200:00ff:fe00:0001");
    put("rxe0/ports/1/state", "4: ACTIVE");
    put("rxe0/ports/1/lid", "0x0");
    put("rxe0/ports/1/rate", "2.5 Gb/sec (1X SDR)");
    put("rxe0/ports/1/link_layer", "Ethernet");

    setenv("IBPROF_SYSFS", "/nowhere", 1);
    setenv("UCX_NET_DEVICES", "mlx5_0:1", 1);
    setenv("MV2_IBA_HCA", "", 1);
    memset(page, 'x', 600); /* too long */
    page[600] = '\0';
    setenv("PSM3_NIC", page, 1);
    ibp_adapter_choice_record(); /* without devices: nothing */
    setenv("IBPROF_SYSFS", devices, 1);
    snprintf(path, sizeof path, "%s/recording", folder);
    CHECK(ibp_recording_open(path, why, sizeof why));
    ibp_adapter_choice_record();
    ibp_ports_record();
    CHECK(ibp_recording_used(IBP_SEGMENT_PORTS) == 2);

    opened = opendir(path);
    CHECK(opened);
    while ((entry = readdir(opened)) && entry->d_name[0] == '.');
    CHECK(entry);
    snprintf(path, sizeof path, "%s/recording/%s", folder, entry->d_name);
    closedir(opened);
    read_segment(path, IBP_SEGMENT_PORTS, page);
    port = (const void *)(page + sizeof(struct ibp_segment));
    for (int i = 0; i < 2; i++, port++)
        if (!strcmp(port->device, "mlx5_0")) {
            found[0] = true;
            CHECK(port->port == 1 && port->lid == 42 && port->lmc == 1 && port->state == 4);
            CHECK(port->node_guid == UINT64_C(0x506b4b0300fa0290) && port->port_guid == UINT64_C(0x506b4b0300fa0291));
            CHECK(!strcmp(port->pci, "0000:3b:00.1") && port->numa_node == 1);
            CHECK(!strcmp(port->near_cores, "16-31,48-63"));
            CHECK(port->rate_gbps == 100.0 && !strcmp(port->link_layer, "InfiniBand") && !*port->gids[1]);
        } else {
            found[1] = true;
            CHECK(!strcmp(port->device, "rxe0") && port->lid == 0 && port->rate_gbps == 2.5);
            CHECK(!*port->pci && port->numa_node == -1 && !*port->near_cores);
        }
    CHECK(found[0] && found[1]);
    check_choices(path);
    return 0;
}
