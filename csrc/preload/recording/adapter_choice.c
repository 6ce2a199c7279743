/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/adapter_choice.h"
#include "platform/text.h"
#include "recording/ports.h"
#include "recording/recording.h"

#include <stdlib.h>
#include <string.h>

/* Variables that choose adapters. Hosts without adapters do not record these variables. */
static const char *const variables[] = {
    "UCX_NET_DEVICES", "OMPI_MCA_btl_openib_if_include", "FI_VERBS_DEVICE_NAME", "FI_VERBS_IFACE", "MV2_IBA_HCA",
    "PSM3_NIC",
};

/* Variables that choose transports. All hosts record these variables. */
static const char *const transports[] = {
    "OMPI_MCA_pml",
    "OMPI_MCA_btl",
    "OMPI_MCA_mtl",
    "OMPI_MCA_btl_tcp_if_include",
    "OMPI_MCA_btl_tcp_if_exclude",
    "UCX_TLS",
    "FI_PROVIDER",
    "FI_TCP_IFACE",
    "FI_SOCKETS_IFACE",
    "MPIR_CVAR_NOLOCAL",
    "I_MPI_FABRICS",
    "I_MPI_OFI_PROVIDER",
    "IBPROF_INTRANODE",
};

/* Record a variable, unless its value is too long: a truncated list of adapters would be wrong. */
static void record(const char *name, const char *text)
{
    struct ibp_choice *choice;

    if (!*text || strlen(text) >= sizeof choice->text) return;
    choice = ibp_recording_reserve(IBP_SEGMENT_CHOICES);
    if (!choice) return;
    memset(choice, 0, sizeof *choice);
    ibp_text_copy(choice->name, sizeof choice->name, name);
    ibp_text_copy(choice->text, sizeof choice->text, text);
    ibp_recording_publish(IBP_SEGMENT_CHOICES);
}

static void record_boot(void)
{
    char boot[64];

    if (ibp_text_read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0) record(IBP_CHOICE_BOOT, boot);
}

static void record_cores(void)
{
    static const char line[] = "\nCpus_allowed_list:\t";
    char status[8192], online[4096], *cores;

    if (ibp_text_read_file("/proc/self/status", status, sizeof status) <= 0) return;
    cores = strstr(status, line);
    if (!cores) return;
    cores += sizeof line - 1;
    cores[strcspn(cores, "\n")] = '\0';
    record(IBP_CHOICE_CORES, cores);
    if (ibp_text_read_file("/sys/devices/system/cpu/online", online, sizeof online) > 0 && strcmp(online, cores))
        record(IBP_CHOICE_ONLINE, online);
}

void ibp_adapter_choice_record(void)
{
    record_cores();
    record_boot();
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++)
        record(transports[i], ibp_environment(transports[i]));
    if (!ibp_ports_exist()) return;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        record(variables[i], ibp_environment(variables[i]));
}
