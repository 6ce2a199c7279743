/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Select the old symbol versions of dlopen and dlerror, so that a plug-in built on a new system also loads on old
 * systems (compare platform/system.h). In old C libraries, both functions are in libdl, which programs with plug-ins
 * load.
 */
#ifndef IBPROF_NCCL_OLD_DLOPEN_H
#define IBPROF_NCCL_OLD_DLOPEN_H

#include <dlfcn.h>

#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlerror,dlerror@GLIBC_2.2.5");
#elif defined(__GLIBC__) && (defined(__aarch64__) || defined(__powerpc64__))
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
__asm__(".symver dlerror,dlerror@GLIBC_2.17");
#endif

#endif
