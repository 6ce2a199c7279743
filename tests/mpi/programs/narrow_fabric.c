/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A library to preload. If these variables are set, libfabric's providers report DATA_BYTES of data with a message, and
 * messages of at most MESSAGE_BYTES. The offsets in fi_info are from libfabric 1.0 to 2.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct endpoint_attributes {
    int type;
    uint32_t protocol, protocol_version;
    size_t largest_message;
};

struct domain_attributes {
    void *domain, *name;
    int kinds[6];
    size_t key_bytes, data_bytes;
};

struct info {
    struct info *next;
    uint64_t capabilities, mode;
    uint32_t address_format;
    size_t address_bytes[2];
    void *addresses[2], *handle, *transmit, *receive;
    struct endpoint_attributes *endpoint;
    struct domain_attributes *domain;
};

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct info *hints,
               struct info **infos);

static void narrow(size_t *bytes, const char *variable)
{
    const char *value = getenv(variable);

    if (value && *bytes > (size_t)atol(value)) *bytes = (size_t)atol(value);
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct info *hints,
               struct info **infos)
{
    int (*next)(uint32_t, const char *, const char *, uint64_t, const struct info *, struct info **) = NULL;
    int result;

    *(void **)&next = dlsym(RTLD_NEXT, "fi_getinfo");
    result = next(version, node, service, flags, hints, infos);
    for (struct info *info = result ? NULL : *infos; info; info = info->next) {
        narrow(&info->domain->data_bytes, "DATA_BYTES");
        narrow(&info->endpoint->largest_message, "MESSAGE_BYTES");
    }
    return result;
}
