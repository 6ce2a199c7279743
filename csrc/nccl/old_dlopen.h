/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The old version of dlopen, as platform/system.h has of other functions: a plug-in that is built on a new system is
 * loaded on an old one. There libdl has it, which whoever loads a plug-in has loaded.
 */
#ifndef IBPROF_NCCL_OLD_DLOPEN_H
#define IBPROF_NCCL_OLD_DLOPEN_H

#include <dlfcn.h>

#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
#elif defined(__GLIBC__) && (defined(__aarch64__) || defined(__powerpc64__))
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
#endif

#endif
