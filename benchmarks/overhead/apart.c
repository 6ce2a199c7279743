/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Keeps a page free after each shared mapping. Valgrind 3.19 merges adjacent mappings of one file and then ends the
 * program (m_aspacemgr/aspacemgr-segnames.c), if the file was renamed in between.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (!address && flags & MAP_SHARED && !(flags & MAP_ANONYMOUS)) {
        const size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
        const long place = syscall(SYS_mmap, NULL, pages + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (place == -1) return MAP_FAILED;
        address = (void *)place;
        flags |= MAP_FIXED;
    }
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}
