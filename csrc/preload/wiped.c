/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "wiped.h"
#include "recording.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static struct ibp_wiped nothing; /* nobody writes to it */
struct ibp_wiped *ibp_wiped = &nothing;

int ibp_wiped_open(void)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct ibp_wiped *expected = &nothing, *page;

    if (__atomic_load_n(&ibp_wiped, __ATOMIC_ACQUIRE) != &nothing) return 0;
    page = ibp_memory_map(bytes);
    if (!page) return -ENOMEM;
    (void)madvise(page, bytes, MADV_WIPEONFORK);
    if (!__atomic_compare_exchange_n(&ibp_wiped, &expected, page, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        ibp_memory_unmap(page, bytes); /* another thread was first */
    return 0;
}
