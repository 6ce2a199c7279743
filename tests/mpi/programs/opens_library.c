/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A library that opens a second library by its own search path, and looks up a function in the libraries after itself.
 * Both results depend on the calling library. With -DOPENED, this file is the second library.
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
    /* No library after this library has the function, but a lookup from the program finds it. */
    return dlsym(RTLD_NEXT, "opens_library") ? 3 : 0;
}
#endif
