/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * If a symbol that a preloaded library needs is missing, the program cannot start. Therefore ibprof uses no symbol
 * newer than glibc 2.17, and declares symbols that musl lacks as weak.
 */
#ifndef IBPROF_PLATFORM_SYSTEM_H
#define IBPROF_PLATFORM_SYSTEM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stddef.h>

#define IBP_EXPORT __attribute__((visibility("default")))
/* Hide a variable from other libraries. Otherwise, a compiler reads the variable through the GOT; this costs time at
 * each message. */
#define IBP_INTERNAL __attribute__((visibility("hidden")))
/* Keep in memory a parameter that was passed on the stack. To load the parameter into a register, a compiler would have
 * to save this register first. */
#define IBP_IN_MEMORY(parameter) __asm__("" : "+m"(parameter))
#define IBP_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define IBP_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* A thread-local variable of a library that is loaded with the program. With the model initial-exec, an access needs no
 * function call, and musl can load the library. */
#define IBP_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

/* glibc 2.34 moved dlsym and other functions into libc, with a new symbol version. The old version is used, because all
 * systems have it. */
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

/* In old C libraries, most of these functions are part of libdl, and some programs without MPI do not load libdl. */
#pragma weak dlsym
#pragma weak dlvsym
#pragma weak dladdr
#pragma weak dlclose
#pragma weak dl_iterate_phdr

#endif
