/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * libc for a preload library: nothing newer than glibc 2.17. Symbols that musl lacks are weak, because a
 * library that cannot be loaded ends the program that it was meant to observe. Every file that calls the dynamic linker
 * includes this one.
 */
#ifndef IBPROF_PLATFORM_SYSTEM_H
#define IBPROF_PLATFORM_SYSTEM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stddef.h>

#define IBP_EXPORT __attribute__((visibility("default")))
/* For declarations of variables in the hot path: without it a compiler looks for them in other libraries too. */
#define IBP_INTERNAL __attribute__((visibility("hidden")))
/* Leaves a parameter that was passed on the stack there during a call, instead of in a register that has to be
 * saved. */
#define IBP_IN_MEMORY(parameter) __asm__("" : "+m"(parameter))
#define IBP_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define IBP_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* A thread-local variable of a library that is loaded with the program: no call is needed, and musl accepts the
 * module. */
#define IBP_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

/* glibc 2.34 moved these into libc under a new version. The old version is still there; on older systems it is the
 * only one. */
#if defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 34) && defined(__x86_64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlvsym,dlvsym@GLIBC_2.2.5");
__asm__(".symver dladdr,dladdr@GLIBC_2.2.5");
__asm__(".symver dlclose,dlclose@GLIBC_2.2.5");
#elif __GLIBC_PREREQ(2, 34) && (defined(__aarch64__) || defined(__powerpc64__))
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
__asm__(".symver dlvsym,dlvsym@GLIBC_2.17");
__asm__(".symver dladdr,dladdr@GLIBC_2.17");
__asm__(".symver dlclose,dlclose@GLIBC_2.17");
#endif
#endif

/* They were part of libdl once, which a program without MPI need not have loaded. */
#pragma weak dlsym
#pragma weak dlvsym
#pragma weak dladdr
#pragma weak dlclose
#pragma weak dl_iterate_phdr

#endif
