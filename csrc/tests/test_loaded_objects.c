/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#define _GNU_SOURCE
#include "check.h"
#include "platform/loaded_objects.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>

static sigjmp_buf before_the_visit;
static volatile sig_atomic_t visits, left_at;

static void leave(int signal)
{
    (void)signal;
    left_at = visits;
    siglongjmp(before_the_visit, 1);
}

static int raise_once(struct dl_phdr_info *info, size_t bytes, void *into)
{
    (void)info;
    (void)bytes;
    (void)into;
    if (++visits == 1) raise(SIGALRM);
    return 0;
}

static int count(struct dl_phdr_info *info, size_t bytes, void *into)
{
    (void)info;
    (void)bytes;
    ++*(int *)into;
    return 0;
}

static void *visit_in_a_thread(void *into)
{
    ibp_visit_objects(count, into);
    return NULL;
}

static void a_handler_that_leaves_keeps_no_lock(void)
{
    struct timespec until;
    pthread_t thread;
    int seen = 0;

    signal(SIGALRM, leave);
    if (!sigsetjmp(before_the_visit, 1)) {
        ibp_visit_objects(raise_once, NULL);
        CHECK(false); /* the handler leaves by longjmp */
    }
    CHECK(left_at > 1); /* signals stay blocked until the visit ends */
    CHECK(!pthread_create(&thread, NULL, visit_in_a_thread, &seen));
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    CHECK(!pthread_timedjoin_np(thread, NULL, &until));
    CHECK(seen == left_at);
}

static int stop(struct dl_phdr_info *info, size_t bytes, void *into)
{
    (void)info;
    (void)bytes;
    return ++*(int *)into == 2 ? 7 : 0;
}

static void the_last_visit_returns_for_all(void)
{
    int seen = 0;

    CHECK(ibp_can_visit_objects());
    CHECK(ibp_visit_objects(stop, &seen) == 7);
    CHECK(seen == 2);
}

int main(void)
{
    a_handler_that_leaves_keeps_no_lock();
    the_last_visit_returns_for_all();
    return 0;
}
