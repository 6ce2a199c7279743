/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/libfabric_tables.h"
#include "platform/memory.h"

#include <string.h>

void *ibp_fi_copy_table(void *table_of_object, struct ibp_fi_known_endpoint *owner)
{
    void **table = table_of_object;
    struct ibp_fi_owned *copy;
    size_t bytes;

    memcpy(&bytes, *table, sizeof bytes);
    copy = ibp_memory_map(sizeof *copy + bytes);
    if (!copy) return NULL;
    copy->owner = owner;
    copy->original = *table;
    memcpy(copy + 1, *table, bytes);
    *table = copy + 1;
    return copy + 1;
}
