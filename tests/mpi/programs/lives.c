/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Programs that start, use or end MPI differently than by MPI_Init and MPI_Finalize in main:
 *
 *     lives aborting|forked-first|controlled|deep|raised|early
 *
 * early: MPI starts before main, and ends after main. With -DLIBRARY, this file is the library that does both.
 */
#include "ibprof.h"

#include <alloca.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LIBRARY

static __attribute__((constructor)) void begin(void)
{
    MPI_Init(NULL, NULL);
}

static __attribute__((destructor)) void end(void)
{
    MPI_Finalize();
}

#else

enum { REGIONS = 300 };

/* Enter regions, which make the recording grow, and return a sum over all ranks. */
static int exchange(const char *about)
{
    int mine = 1, sum = 0;

    for (int i = 0; i < REGIONS; i++) {
        char name[48];

        snprintf(name, sizeof name, "%s %d", about, i);
        ibprof_region_begin(name);
        if (i % 50 == 0) MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        ibprof_region_end();
    }
    return sum;
}

static void tell(const char *about, int result)
{
    int me;

    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (!me) printf("%s %d\n", about, result);
    fflush(stdout);
}

static void *abort_all(void *unused)
{
    MPI_Abort(MPI_COMM_WORLD, 9);
    return unused;
}

static void abort_in_thread(void)
{
    pthread_t thread;
    int never;

    exchange("before");
    tell("aborting", 1);
    pthread_create(&thread, NULL, abort_all, NULL);
    MPI_Recv(&never, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Call MPI_Pcontrol with any levels, and with further arguments that only a tool understands. */
static void control(void)
{
    int result = MPI_Pcontrol(0);

    result += exchange("off");
    result += MPI_Pcontrol(1);
    result += MPI_Pcontrol(2, "flush", 3.5, &result);
    result += MPI_Pcontrol(-1);
    result += MPI_Pcontrol(1000000, 1L, 2L, 3L, 4L, 5L, 6L, 7L);
    result += MPI_Pcontrol(1);
    tell("controlled", result + exchange("on"));
}

/* The stack has hardly more space left than MPI itself needs. */
static __attribute__((noinline)) int exchange_below(size_t bytes)
{
    volatile char *room = alloca(bytes);

    for (size_t i = 0; i < bytes; i += 1024) room[i] = 1;
    return exchange("deep") + room[0] - 1;
}

static void go_deep(void)
{
    struct rlimit stack;

    getrlimit(RLIMIT_STACK, &stack);
    if (stack.rlim_cur == RLIM_INFINITY || stack.rlim_cur > 8 << 20) stack.rlim_cur = 8 << 20;
    exchange("shallow");
    tell("deep", exchange_below(stack.rlim_cur - (256 << 10)));
}

/* A limit that was small at MPI_Init is removed, and set again. */
static void raise_limit(rlim_t kept)
{
    struct rlimit limit;

    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_AS, &limit);
    exchange("raised");
    limit.rlim_cur = kept;
    setrlimit(RLIMIT_AS, &limit);
    tell("raised", exchange("lowered"));
}

/* The rank is a child. The parent waits for the rank, and ends with the rank's status. */
static void become_child(void)
{
    const pid_t child = fork();
    int status = 0;

    if (!child) return;
    waitpid(child, &status, 0);
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 100);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const rlim_t least = (rlim_t)1 << 31;
    const struct rlimit limit = {least, RLIM_INFINITY};
    const bool is_early = !strcmp(how, "early");
    int level;

    if (!strcmp(how, "forked-first")) become_child();
    if (!strcmp(how, "raised")) setrlimit(RLIMIT_AS, &limit);
    if (!is_early) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (!strcmp(how, "aborting")) abort_in_thread();
    if (!strcmp(how, "controlled")) control();
    if (!strcmp(how, "deep")) go_deep();
    if (!strcmp(how, "raised")) raise_limit(least);
    if (is_early || !strcmp(how, "forked-first")) tell(how, exchange(how));
    if (!is_early) MPI_Finalize();
    return 0;
}

#endif
