/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Private memory in whole pages, filled with zeros. malloc is not used, because programs and tools may replace malloc.
 */
#ifndef IBPROF_PLATFORM_MEMORY_H
#define IBPROF_PLATFORM_MEMORY_H

#include <stddef.h>

/* Return new memory; NULL if memory is exhausted. */
void *ibp_memory_map(size_t bytes);
void ibp_memory_unmap(void *memory, size_t bytes);

#endif
