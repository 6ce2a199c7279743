/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Parts of this process' memory, as the kernel lists them.
 */
#ifndef IBPROF_PLATFORM_MAPPED_RANGE_H
#define IBPROF_PLATFORM_MAPPED_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct ibp_mapped_range {
    uintptr_t begin, end;
};

/* Find the readable part that holds an address. Return false when there is none, or no list. It reads a file. */
bool ibp_mapped_range_find(uintptr_t address, struct ibp_mapped_range *range);

#endif
