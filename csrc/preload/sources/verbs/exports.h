/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Macros for files that export functions of libibverbs and vendors' libraries. The exported names have no symbol
 * version. Therefore all callers use the exported functions, including libraries that the program opens later with
 * RTLD_LOCAL.
 */
#ifndef IBPROF_SOURCES_VERBS_EXPORTS_H
#define IBPROF_SOURCES_VERBS_EXPORTS_H

#include "platform/system.h"
#include "sources/verbs/libraries.h"

#include <errno.h>
#include <string.h>

/* At the first call, find the real function and store it in `next`. If the library lacks the function, return `failure`
 * from the enclosing function. */
#define FIND_REAL(next, library, name, failure)                                                                        \
    do {                                                                                                               \
        if (IBP_UNLIKELY(!(next))) {                                                                                   \
            void *found_ = ibp_verbs_real_in(library, name);                                                           \
                                                                                                                       \
            if (!found_) {                                                                                             \
                errno = ENOSYS;                                                                                        \
                return failure;                                                                                        \
            }                                                                                                          \
            memcpy(&(next), &found_, sizeof(next));                                                                    \
        }                                                                                                              \
    } while (0)
#define FIND_VERB(next, name, failure) FIND_REAL(next, IBP_VERBS_LIBRARY, name, failure)

#define DEFINE(type, name, ...)                                                                                        \
    IBP_EXPORT type name(__VA_ARGS__);                                                                                 \
    IBP_EXPORT type name(__VA_ARGS__)

#endif
