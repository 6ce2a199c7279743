/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * With a mock /sys/class/infiniband of a host with an InfiniBand and an Ethernet port.
 */
#include "check.h"
#include "recording/ports.h"
#include "recording/recording.h"

#include <dirent.h>
#include <fcntl.h>
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

int main(void)
{
    const char *folder = make_test_folder();
    const struct ibp_port *port;
    char why[256], path[700];
    struct ibp_segment *segment;
    const struct dirent *entry;
    char page[IBP_PAGE_BYTES];
    bool found[2] = {false, false};
    DIR *opened;
    int file;

    snprintf(devices, sizeof devices, "%s/sysfs", folder);
    put("mlx5_0/node_guid", "506b:4b03:00fa:0290");
    put("mlx5_0/ports/1/state", "4: ACTIVE");
    put("mlx5_0/ports/1/lid", "0x2a");
    put("mlx5_0/ports/1/lid_mask_count", "1");
    put("mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)");
    put("mlx5_0/ports/1/link_layer", "InfiniBand");
    put("mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:506b:4b03:00fa:0291");
    put("mlx5_0/ports/1/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000");
    put("rxe0/node_guid", "0200:00ff:fe00:0001");
    put("rxe0/ports/1/state", "4: ACTIVE");
    put("rxe0/ports/1/lid", "0x0");
    put("rxe0/ports/1/rate", "2.5 Gb/sec (1X SDR)");
    put("rxe0/ports/1/link_layer", "Ethernet");

    setenv("IBPROF_SYSFS", devices, 1);
    snprintf(path, sizeof path, "%s/recording", folder);
    CHECK(ibp_recording_open(path, why, sizeof why));
    ibp_ports_record();
    CHECK(ibp_recording_used(IBP_SEGMENT_PORTS) == 2);

    opened = opendir(path);
    CHECK(opened);
    while ((entry = readdir(opened)) && entry->d_name[0] == '.');
    CHECK(entry);
    snprintf(path, sizeof path, "%s/recording/%s", folder, entry->d_name);
    closedir(opened);
    file = open(path, O_RDONLY);
    CHECK(file >= 0);
    segment = (void *)page;
    do CHECK(read(file, page, sizeof page) == sizeof page);
    while (segment->magic != IBP_SEGMENT_MAGIC || segment->kind != IBP_SEGMENT_PORTS);
    close(file);
    port = (const void *)(segment + 1);
    for (int i = 0; i < 2; i++, port++)
        if (!strcmp(port->device, "mlx5_0")) {
            found[0] = true;
            CHECK(port->port == 1 && port->lid == 42 && port->lmc == 1 && port->state == 4);
            CHECK(port->node_guid == UINT64_C(0x506b4b0300fa0290) && port->port_guid == UINT64_C(0x506b4b0300fa0291));
            CHECK(port->rate_gbps == 100.0 && !strcmp(port->link_layer, "InfiniBand") && !*port->gids[1]);
        } else {
            found[1] = true;
            CHECK(!strcmp(port->device, "rxe0") && port->lid == 0 && port->rate_gbps == 2.5);
        }
    CHECK(found[0] && found[1]);
    return 0;
}
