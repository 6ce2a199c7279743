/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Ports of a host with a mock /sys/class/infiniband: an InfiniBand port, an Ethernet port, and network interfaces.
 */
#include "platform/system.h"
#include "check.h"
#include "recording/adapter_choice.h"
#include "recording/interfaces.h"
#include "recording/ports.h"
#include "recording/recording.h"
#include "recording/transports.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
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

/* Write the cores of this process from sched_getaffinity, as a list of single cores. */
static void own_cores(char *into, size_t bytes)
{
    cpu_set_t cores;

    CHECK(!sched_getaffinity(0, sizeof cores, &cores));
    *into = '\0';
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &cores))
            snprintf(into + strlen(into), bytes - strlen(into), "%s%d", *into ? "," : "", core);
}

/* Expand a list such as 0-2,5 to single cores. */
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
    CHECK(((const struct ibp_segment *)page)->used == 4);
    own_cores(cores, sizeof cores);
    expand(choice[0].text, expanded, sizeof expanded);
    CHECK(!strcmp(choice[0].name, "cores") && !strcmp(expanded, cores));
    CHECK(!strcmp(choice[1].name, "boot") && strlen(choice[1].text) == 36);
    CHECK(!strcmp(choice[2].name, "OMPI_MCA_btl") && !strcmp(choice[2].text, "tcp,self"));
    CHECK(!strcmp(choice[3].name, "UCX_NET_DEVICES") && !strcmp(choice[3].text, "mlx5_0:1"));
}

static void check_interfaces(const char *path)
{
    char page[IBP_PAGE_BYTES];
    const struct ibp_interface *interface = (const void *)(page + sizeof(struct ibp_segment));
    const struct ibp_hardware *counter = (const void *)(page + sizeof(struct ibp_segment));

    read_segment(path, IBP_SEGMENT_INTERFACES, page);
    CHECK(((const struct ibp_segment *)page)->used == 2);
    if (strcmp(interface->name, "ib0")) interface++;
    CHECK(!strcmp(interface->name, "ib0") && !strcmp(interface->device, "mlx5_0") && interface->type == 32);
    CHECK(interface->mtu == 2044 && interface->speed_mbps == 100000 && interface->is_up && interface->is_physical);
    interface = (const void *)(page + sizeof(struct ibp_segment));
    if (strcmp(interface->name, "veth7")) interface++;
    CHECK(!strcmp(interface->name, "veth7") && !*interface->device && interface->type == 1);
    CHECK(interface->speed_mbps == -1 && !interface->is_up && !interface->is_physical);
    read_segment(path, IBP_SEGMENT_HARDWARE, page);
    CHECK(((const struct ibp_segment *)page)->used == 1 && !counter->port && !strcmp(counter->device, "ib0"));
    CHECK(!strcmp(counter->name, "tx_bytes") && counter->before == 1234 && counter->after == 5678);
    CHECK(counter->read_again == 1);
}

/* -- transports ---------------------------------------------------------------------------------------------------- */

static int sockets[3];

/* Send 100,000 bytes over a loopback connection. This process has both sockets of the connection, and the listening
 * socket. */
static void open_transports(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    char data[1000] = "";

    for (int i = 0; i < 2; i++) CHECK((sockets[i] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    CHECK(!bind(sockets[0], (void *)&address, sizeof address) && !listen(sockets[0], 1));
    CHECK(!getsockname(sockets[0], (void *)&address, &bytes));
    CHECK(!connect(sockets[1], (void *)&address, sizeof address));
    CHECK((sockets[2] = accept(sockets[0], NULL, NULL)) >= 0);
    for (int i = 0; i < 100; i++) {
        CHECK(send(sockets[1], data, sizeof data, 0) == sizeof data);
        CHECK(recv(sockets[2], data, sizeof data, MSG_WAITALL) == sizeof data);
    }
    ibp_transports_record();
}

static void check_transports(const char *path)
{
    char page[IBP_PAGE_BYTES];
    const struct ibp_transport *transport = (const void *)(page + sizeof(struct ibp_segment));

    read_segment(path, IBP_SEGMENT_TRANSPORTS, page);
    CHECK(((const struct ibp_segment *)page)->used == 1);
    CHECK(!strcmp(transport->kind, "tcp") && !strcmp(transport->device, "lo") && transport->handles == 2);
    CHECK(transport->sent_bytes >= 99000 && transport->sent_bytes <= 100001);
    CHECK(transport->received_bytes >= 99000 && transport->received_bytes <= 100001);
    CHECK(transport->segments >= 100 && !transport->retransmitted);
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
    /* In sysfs, a device has a link to its PCI function. */
    put("../pci0000:3a/0000:3b:00.1/numa_node", "1");
    put("../pci0000:3a/0000:3b:00.1/local_cpulist", "16-31,48-63");
    snprintf(path, sizeof path, "%s/mlx5_0/device", devices);
    CHECK(!symlink("../../pci0000:3a/0000:3b:00.1", path));
    put("../pci0000:3a/0000:3b:00.1/current_link_speed", "8.0 GT/s PCIe");
    put("../pci0000:3a/0000:3b:00.1/max_link_speed", "16.0 GT/s PCIe");
    put("../pci0000:3a/0000:3b:00.1/current_link_width", "8");
    put("../pci0000:3a/0000:3b:00.1/max_link_width", "16");
    put("../net/ib0/type", "32");
    put("../net/ib0/mtu", "2044");
    put("../net/ib0/speed", "100000");
    put("../net/ib0/operstate", "up");
    put("../net/ib0/device/infiniband/mlx5_0/node_guid", "506b:4b03:00fa:0290");
    put("../net/ib0/statistics/tx_bytes", "1234");
    put("../net/veth7/type", "1");
    put("../net/veth7/mtu", "1500");
    put("../net/veth7/speed", "-1");
    put("../net/veth7/operstate", "down");
    put("rxe0/node_guid", "0200:00ff:fe00:0001");
    put("rxe0/ports/1/state", "4: ACTIVE");
    put("rxe0/ports/1/lid", "0x0");
    put("rxe0/ports/1/rate", "2.5 Gb/sec (1X SDR)");
    put("rxe0/ports/1/link_layer", "Ethernet");

    setenv("UCX_NET_DEVICES", "mlx5_0:1", 1);
    setenv("MV2_IBA_HCA", "", 1);
    setenv("OMPI_MCA_btl", "tcp,self", 1);
    memset(page, 'x', 600); /* too long */
    page[600] = '\0';
    setenv("PSM3_NIC", page, 1);
    setenv("IBPROF_SYSFS", devices, 1);
    snprintf(path, sizeof path, "%s/recording", folder);
    CHECK(ibp_recording_open(path, why, sizeof why));
    ibp_adapter_choice_record();
    ibp_ports_record();
    CHECK(ibp_recording_used(IBP_SEGMENT_PORTS) == 2);
    ibp_interfaces_record();
    open_transports();
    put("../net/ib0/statistics/tx_bytes", "5678");
    ibp_ports_read_again();

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
            CHECK(port->width == 4 && port->pci_width == 8 && port->pci_width_max == 16);
            CHECK(port->pci_gts == 8.0 && port->pci_gts_max == 16.0);
            CHECK(port->rate_gbps == 100.0 && !strcmp(port->link_layer, "InfiniBand") && !*port->gids[1]);
        } else {
            found[1] = true;
            CHECK(!strcmp(port->device, "rxe0") && port->lid == 0 && port->rate_gbps == 2.5);
            CHECK(!*port->pci && port->numa_node == -1 && !*port->near_cores);
        }
    CHECK(found[0] && found[1]);
    check_choices(path);
    check_interfaces(path);
    check_transports(path);
    return 0;
}
