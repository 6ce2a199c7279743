/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Ranges of mapped memory of this process, from /proc/self/maps.
 */
#ifndef IBPROF_PLATFORM_MAPPED_RANGE_H
#define IBPROF_PLATFORM_MAPPED_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct ibp_mapped_range {
    uintptr_t begin, end;
};

/* Find the readable range that contains an address. Return false if the address is unreadable, or if /proc/self/maps
 * cannot be read. */
bool ibp_mapped_range_find(uintptr_t address, struct ibp_mapped_range *range);

#endif
