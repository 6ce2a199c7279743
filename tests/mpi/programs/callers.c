/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls MPI through the named library: directly, from recursions, and from functions that the library and libc call.
 * A comment names each line that the test checks.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEVER_INLINED __attribute__((noinline, noclone))

static int (*exchange)(char *, int);
static int (*visit)(int (*)(char *), char *);
static int (*prepare)(char *, int, MPI_Request *);
static int (*spread)(char *, int);
static char bytes[256];
/* Prevents tail calls, because the function of a tail call has no frame. */
static volatile int sum;

static NEVER_INLINED void once(void)
{
    sum += exchange(bytes, 11); /* @once */
}

static NEVER_INLINED void twice(void)
{
    sum += exchange(bytes, 12); /* @first */
    sum += exchange(bytes, 13); /* @second */
}

/* The frame has a larger alignment and a variable size, which makes it harder to unwind. */
static NEVER_INLINED void aligned(int more)
{
    _Alignas(128) char own[256];
    char others[more];

    memset(own, 0, sizeof own);
    memset(others, 1, (size_t)more);
    sum += exchange(own, 14) + others[more - 1]; /* @aligned */
    sum += own[more];
}

static int compare(const void *a, const void *b)
{
    if (*(const int *)a != *(const int *)b) sum += exchange(bytes, 15); /* @compare */
    return *(const int *)a - *(const int *)b;
}

static NEVER_INLINED void sorts(void)
{
    int two[] = {1, 0};

    qsort(two, 2, sizeof *two, compare); /* @sorts */
    sum += two[0];
}

static int callback(char *of)
{
    return exchange(of, 16) + 1; /* @callback */
}

static NEVER_INLINED void visits(void)
{
    sum += visit(callback, bytes); /* @visits */
}

static NEVER_INLINED void recurses(int depth)
{
    if (depth)
        recurses(depth - 1); /* @recurses */
    else
        sum += exchange(bytes, 17); /* @deepest */
    sum += depth;
}

static inline __attribute__((always_inline)) void inlined(void)
{
    sum += exchange(bytes, 18); /* @inlined */
}

static NEVER_INLINED void around(void)
{
    inlined(); /* @around */
}

static NEVER_INLINED void persists(void)
{
    MPI_Request request;

    sum += prepare(bytes, 19, &request); /* @persists */
    for (int i = 0; i < 2; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

static NEVER_INLINED void spreads(void)
{
    sum += spread(bytes, 20); /* @spreads */
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);

    if (!found) exit(3);
    return found;
}

int main(int count, char **words)
{
    void *library = count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;

    if (!library) return 2;
    *(void **)&exchange = find(library, "exchange");
    *(void **)&visit = find(library, "visit");
    *(void **)&prepare = find(library, "prepare");
    *(void **)&spread = find(library, "spread");
    MPI_Init(&count, &words);
    for (int i = 0; i < 10; i++) {
        once();      /* @main once */
        twice();     /* @main twice */
        aligned(64); /* @main aligned */
    }
    sorts();     /* @main sorts */
    visits();    /* @main visits */
    recurses(9); /* @main recurses */
    around();    /* @main around */
    persists();  /* @main persists */
    spreads();   /* @main spreads */
    MPI_Finalize();
    return 0;
}
