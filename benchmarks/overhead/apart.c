/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Keeps a page free after each shared mapping. Valgrind 3.19 merges adjacent mappings of a file, and ends the
 * program (m_aspacemgr/aspacemgr-segnames.c) if the file had another name at the first mapping.
 *
 * Stops the coarse clock: under Valgrind messages take so long that ibprof would time each one.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_MONOTONIC_COARSE) return (int)syscall(SYS_clock_gettime, clock, now);
    *now = (struct timespec){.tv_sec = 1};
    return 0;
}

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
