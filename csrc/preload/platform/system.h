/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * libc for a preload library: nothing newer than glibc 2.17. Symbols that musl lacks are weak: if a preloaded library
 * cannot be loaded, the program ends. Every file that calls the dynamic linker includes this one.
 */
#ifndef IBPROF_PLATFORM_SYSTEM_H
#define IBPROF_PLATFORM_SYSTEM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stddef.h>

#define IBP_EXPORT __attribute__((visibility("default")))
/* For declarations of variables in the hot path. Without it a compiler looks them up in other libraries too. */
#define IBP_INTERNAL __attribute__((visibility("hidden")))
/* Keep a parameter that was passed on the stack in memory during a call, instead of in a register that must be
 * saved. */
#define IBP_IN_MEMORY(parameter) __asm__("" : "+m"(parameter))
#define IBP_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define IBP_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* A thread-local variable of a library that is loaded with the program. It needs no call, and musl accepts the
 * library. */
#define IBP_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

/* glibc 2.34 moved these functions into libc under a new version. The old version still exists, and is the only one on
 * older systems. */
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

/* These functions were part of libdl once; a program without MPI may not have loaded libdl. */
#pragma weak dlsym
#pragma weak dlvsym
#pragma weak dladdr
#pragma weak dlclose
#pragma weak dl_iterate_phdr

#endif
