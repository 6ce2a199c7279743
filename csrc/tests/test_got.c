/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Two mock MPI libraries call a function of a third library. The first MPI library is bound lazily, the second at load
 * time with a read-only GOT. ibprof redirects only calls of the MPI libraries. The hook reaches the original function,
 * and ibprof undoes the redirection.
 */
#include "check.h"
#include "libmpi/got.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int mock_lazy(int value), mock_now(int value), mock_layer(int value);

static int (*original)(int);
static int hooked, replaced;

static int hook(int value)
{
    hooked++;
    return original(value) + 1000;
}

static int replacement(int value)
{
    replaced++;
    return mock_layer(value) + 5000;
}

static int is_writable(const void *address)
{
    unsigned long begin, end;
    char line[600], rights[5];
    int writable = -1;
    FILE *maps = fopen("/proc/self/maps", "r");

    CHECK(maps);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, rights) == 3 && (uintptr_t)address >= begin &&
            (uintptr_t)address < end)
            writable = rights[1] == 'w';
    fclose(maps);
    return writable;
}

static void test_calls_of_the_library_alone(void)
{
    CHECK(ibp_got_redirect("mock_layer", (void *)hook, &original) == 2);
    CHECK(original == mock_layer);
    CHECK(mock_lazy(2) == 1021 && mock_now(3) == 1031 && hooked == 2);
    CHECK(mock_layer(4) == 40 && hooked == 2); /* the program's own call */
    CHECK(!ibp_got_redirect("mock_layer", (void *)hook, &original)); /* a second redirection changes no slot */
    CHECK(original == mock_layer);
    ibp_got_restore();
    CHECK(mock_lazy(2) == 21 && mock_now(3) == 31 && hooked == 2);
    ibp_got_restore();
    CHECK(mock_lazy(2) == 21);
}

static void test_what_is_not_called(void)
{
    void *untouched = &hooked;

    CHECK(!ibp_got_redirect("no_such_function", (void *)hook, &untouched) && untouched == &hooked);
}

static void test_everybody(void)
{
    int (*layer)(int);

    *(void **)&layer = dlsym(RTLD_DEFAULT, "mock_layer");
    CHECK(layer == mock_layer);
    ibp_got_redirect_all("mock_layer", (void *)hook,
                         (void *)replacement); /* slots that are bound to another function stay unchanged */
    replaced = 0;
    CHECK(mock_now(1) == 11 && !replaced);
    ibp_got_redirect_all("mock_layer", (void *)layer, (void *)replacement);
    CHECK(mock_now(1) == 5011 && mock_lazy(1) == 5011 && replaced == 2);
    CHECK(mock_layer(1) == 10 && replaced == 2); /* this program's calls remain unchanged */
    ibp_got_restore();
    CHECK(mock_now(1) == 5011); /* permanent */
}

int main(void)
{
    test_what_is_not_called();
    test_calls_of_the_library_alone();
    test_everybody();
    CHECK(is_writable((void *)(uintptr_t)mock_now) == 0);
    return 0;
}
