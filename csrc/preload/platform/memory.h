/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Private memory, zeroed, in whole pages. malloc is avoided: it may be the program's own or another tool's.
 */
#ifndef IBPROF_PLATFORM_MEMORY_H
#define IBPROF_PLATFORM_MEMORY_H

#include <stddef.h>

/* Map memory; NULL when there is none. */
void *ibp_memory_map(size_t bytes);
void ibp_memory_unmap(void *memory, size_t bytes);

#endif
