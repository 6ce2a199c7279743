/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "support/workers.h"

#include <pthread.h>

enum { MOST_THREADS = 256 };

struct job {
    void (*work)(void *context);
    void *context;
};

static void *run(void *argument)
{
    struct job *job = argument;
    job->work(job->context);
    return NULL;
}

void ibp_run_workers(unsigned threads, void (*work)(void *context), void *context)
{
    struct job job = {work, context};
    pthread_t others[MOST_THREADS];
    unsigned started = 0;
    while (started + 1 < threads && started < MOST_THREADS && !pthread_create(&others[started], NULL, run, &job))
        started++;
    work(context);
    while (started) pthread_join(others[--started], NULL);
}
