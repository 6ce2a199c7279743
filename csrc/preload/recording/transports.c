/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/transports.h"
#include "platform/loaded_objects.h"
#include "platform/text.h"
#include "recording/recording.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRANSPORTS_MAX 32
#define TCP_INFO_OPTION 11
#define TCP_LISTENING 10

/* The first members of the kernel's struct tcp_info. Old headers declare only some of these members. */
struct tcp_counts {
    uint8_t state, others[7];
    uint32_t values[23];
    uint32_t retransmitted;
    uint64_t pacing[2];
    uint64_t bytes_acked, bytes_received;
    uint32_t segments_out, segments_in, unsent, min_rtt_us;
};
_Static_assert(offsetof(struct tcp_counts, retransmitted) == 100, "as the kernel has it");
_Static_assert(offsetof(struct tcp_counts, bytes_acked) == 120, "as the kernel has it");

static const struct {
    const char *path, *kind;
} device_files[] = {
    {"/dev/infiniband/uverbs", "verbs"},
    {"/dev/hfi1_", "psm"},
    {"/dev/ipath", "psm"},
    {"/dev/cxi", "cxi"},
    {"/dev/knem", "knem"},
    {"/dev/xpmem", "xpmem"},
};

static const char *const libraries[] = {"libucp", "libfabric", "libpsm2", "libpsm3", "mca_pml_ucx", "mca_pml_cm"};

static struct ibp_transport transports[TRANSPORTS_MAX];
static unsigned transport_count;

static struct ibp_transport *find_transport(const char *kind, const char *device)
{
    struct ibp_transport *transport = transports;

    for (; transport < transports + transport_count; transport++)
        if (!strcmp(transport->kind, kind) && !strcmp(transport->device, device)) return transport;
    if (transport_count == TRANSPORTS_MAX) return NULL;
    transport_count++;
    memset(transport, 0, sizeof *transport);
    ibp_text_copy(transport->kind, sizeof transport->kind, kind);
    ibp_text_copy(transport->device, sizeof transport->device, device);
    return transport;
}

/* -- TCP ----------------------------------------------------------------------------------------------------------- */

/* Write an address as 16 bytes of IPv6. Return false for addresses other than IPv4 and IPv6. */
static bool parse_address(const struct sockaddr *address, uint8_t into[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* prefix of an IPv4 address in IPv6 */

    if (!address) return false;
    if (address->sa_family == AF_INET6) {
        memcpy(into, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
        return true;
    }
    if (address->sa_family != AF_INET) return false;
    memcpy(into, mapped, 12);
    memcpy(into + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    return true;
}

/* Return the interface with an address; NULL if no interface of this host has the address. */
static const struct ifaddrs *find_interface(const struct ifaddrs *interfaces, const struct sockaddr_storage *address)
{
    uint8_t wanted[16], found[16];

    if (!parse_address((const void *)address, wanted)) return NULL;
    for (; interfaces; interfaces = interfaces->ifa_next)
        if (parse_address(interfaces->ifa_addr, found) && !memcmp(wanted, found, sizeof found)) return interfaces;
    return NULL;
}

static void add_connection(int file, const struct ifaddrs *interfaces)
{
    struct tcp_counts counts = {0};
    socklen_t bytes = sizeof counts, own_bytes, peer_bytes;
    struct sockaddr_storage own, peer;
    struct ibp_transport *transport;
    const struct ifaddrs *interface;

    if (getsockopt(file, IPPROTO_TCP, TCP_INFO_OPTION, &counts, &bytes) || counts.state == TCP_LISTENING) return;
    own_bytes = peer_bytes = sizeof own;
    if (getsockname(file, (void *)&own, &own_bytes) || getpeername(file, (void *)&peer, &peer_bytes)) return;
    interface = find_interface(interfaces, &own);
    /* If the peer's address is an address of this host, the kernel uses the loopback interface. */
    transport = find_transport("tcp", find_interface(interfaces, &peer)  ? "lo"
                                      : interface && interface->ifa_name ? interface->ifa_name
                                                                         : "");
    if (!transport) return;
    transport->handles++;
    transport->retransmitted += counts.retransmitted;
    if (bytes < sizeof counts) return;
    transport->sent_bytes += counts.bytes_acked;
    transport->received_bytes += counts.bytes_received;
    transport->segments += counts.segments_out;
    if (!transport->min_rtt_us || counts.min_rtt_us < transport->min_rtt_us) transport->min_rtt_us = counts.min_rtt_us;
}

/* -- devices ------------------------------------------------------------------------------------------------------- */

/* Replace a name such as uverbs0 by the name of the InfiniBand device. */
static void name_verbs_device(char *name, size_t bytes)
{
    char path[1024], device[64];

    snprintf(path, sizeof path, "/sys/class/infiniband_verbs/%s/ibdev", name);
    if (ibp_text_read_file(path, device, sizeof device) > 0) ibp_text_copy(name, bytes, device);
}

static void add_device(const char *path)
{
    for (size_t i = 0; i < sizeof device_files / sizeof *device_files; i++) {
        struct ibp_transport *transport;
        char name[64];

        if (strncmp(path, device_files[i].path, strlen(device_files[i].path))) continue;
        ibp_text_copy(name, sizeof name, strrchr(path, '/') + 1);
        if (!i) name_verbs_device(name, sizeof name);
        transport = find_transport(device_files[i].kind, name);
        if (transport) transport->handles++;
        return;
    }
}

static void visit_files(const struct ifaddrs *interfaces)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;

    if (!folder) return;
    while ((entry = readdir(folder))) {
        char target[256];
        const ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);

        if (length <= 0) continue;
        target[length] = '\0';
        if (!strncmp(target, "socket:", 7))
            add_connection((int)ibp_text_number(entry->d_name), interfaces);
        else
            add_device(target);
    }
    closedir(folder);
}

/* -- libraries ----------------------------------------------------------------------------------------------------- */

static int visit_library(struct dl_phdr_info *info, size_t bytes, void *into)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

    (void)bytes, (void)into;
    for (size_t i = 0; slash && i < sizeof libraries / sizeof *libraries; i++)
        if (!strncmp(slash + 1, libraries[i], strlen(libraries[i]))) {
            struct ibp_transport *transport = find_transport("library", libraries[i]);

            if (transport) transport->handles++;
        }
    return 0;
}

void ibp_transports_record(void)
{
    struct ifaddrs *interfaces = NULL;

    transport_count = 0;
    if (getifaddrs(&interfaces)) interfaces = NULL;
    visit_files(interfaces);
    if (interfaces) freeifaddrs(interfaces);
    ibp_visit_objects(visit_library, NULL);
    for (unsigned i = 0; i < transport_count; i++) {
        struct ibp_transport *record = ibp_recording_reserve(IBP_SEGMENT_TRANSPORTS);

        if (!record) return;
        *record = transports[i];
        ibp_recording_publish(IBP_SEGMENT_TRANSPORTS);
    }
}
