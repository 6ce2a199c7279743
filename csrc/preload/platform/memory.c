/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "platform/memory.h"

#include <sys/mman.h>

void *ibp_memory_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void ibp_memory_unmap(void *memory, size_t bytes)
{
    if (memory) munmap(memory, bytes);
}
