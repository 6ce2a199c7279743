/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A library to preload: ranks that wait for messages over UCX yield their processor, whereas MPICH waits busily. Tests
 * with more ranks than processors then end in time.
 *
 *     cc -shared -fPIC -O2 -o libyields.so yields.c
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*next)(void *);
    unsigned done;

    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "ucp_worker_progress");
    done = next(worker);
    if (!done) sched_yield();
    return done;
}
