/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/process_state.h"
#include "platform/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* glibc implements pthread_atfork by this function. The symbol is weak, because other C libraries lack it. Systems with
 * other C libraries have kernel 4.14 or newer, on which ibprof needs no fork handler. */
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *library);
#pragma weak __register_atfork

/* The state before ibp_process_state_open: all zeros, never written. */
static struct ibp_process_state nothing;
struct ibp_process_state *ibp_process_state = &nothing;

bool ibp_counting = true;

static void clear_state(void)
{
    memset(ibp_process_state, 0, sizeof *ibp_process_state);
}

/* Make the page zero in a child of fork. Kernels before 4.14 lack MADV_WIPEONFORK; on these, a fork handler clears the
 * page. */
static void clear_on_fork(struct ibp_process_state *page, size_t bytes)
{
    if (madvise(page, bytes, MADV_WIPEONFORK) && __register_atfork)
        (void)__register_atfork(NULL, NULL, clear_state, NULL);
}

int ibp_process_state_open(void)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct ibp_process_state *expected = &nothing, *page;

    if (__atomic_load_n(&ibp_process_state, __ATOMIC_ACQUIRE) != &nothing) return 0;
    page = ibp_memory_map(bytes);
    if (!page) return -ENOMEM;
    if (!__atomic_compare_exchange_n(&ibp_process_state, &expected, page, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        ibp_memory_unmap(page, bytes); /* another thread has opened the state meanwhile */
    else
        clear_on_fork(page, bytes);
    return 0;
}
