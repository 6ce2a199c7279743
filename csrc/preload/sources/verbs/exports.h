/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Shared by files that export functions of libibverbs or of mlx5's library under names without a version. Such names
 * bind in all callers, including libraries loaded later with RTLD_LOCAL.
 */
#ifndef IBPROF_SOURCES_VERBS_EXPORTS_H
#define IBPROF_SOURCES_VERBS_EXPORTS_H

#include "platform/system.h"
#include "sources/verbs/libraries.h"

#include <errno.h>
#include <string.h>

/* Set the function pointer `next`, once, or make the function return `failure`. */
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

/* Declare and begin an exported function. */
#define DEFINE(type, name, ...)                                                                                        \
    IBP_EXPORT type name(__VA_ARGS__);                                                                                 \
    IBP_EXPORT type name(__VA_ARGS__)

#endif
