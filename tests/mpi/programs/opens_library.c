/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A library that opens another one by the path which is written in itself, and looks up a function behind its own: both
 * depend on who asks. With -DOPENED it is that other one.
 */
#include <dlfcn.h>

#ifdef OPENED
int answer(void)
{
    return 42;
}
#else
int opens_library(void)
{
    int (*answer)(void);
    void *library;

    (void)dlopen("libibverbs.so.1", RTLD_NOW); /* from here on, ibprof sees lookups */
    library = dlopen("libopened.so", RTLD_NOW);
    if (!library) return 1;
    *(void **)&answer = dlsym(library, "answer");
    if (!answer || answer() != 42) return 2;
    /* No library behind this one has the function, but from the program one is found. */
    return dlsym(RTLD_NEXT, "opens_library") ? 3 : 0;
}
#endif
