/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Shared by hand-written wrappers: find the next function of the same name.
 */
#ifndef IBPROF_CALLS_WRAPPER_H
#define IBPROF_CALLS_WRAPPER_H

#include "libmpi/got.h"
#include "libmpi/library.h"
#include "platform/system.h"

#include <string.h>

/* Returned by a call that only ibprof defines and the MPI library lacks. No MPI uses this error code, so a program
 * treats it as a failure; mpi4py uses it in its own stubs for missing calls. */
#define IBP_MISSING_CALL (-1431655766)

/* Set the function pointer `next`, once, or make the wrapper return IBP_MISSING_CALL. */
#define IBP_FIND_NEXT(next, exported)                                                                                  \
    do {                                                                                                               \
        if (IBP_UNLIKELY(!(next))) {                                                                                   \
            void *found_ = ibp_mpi_next(exported);                                                                     \
                                                                                                                       \
            if (!found_) return IBP_MISSING_CALL;                                                                      \
            memcpy(&(next), &found_, sizeof(next));                                                                    \
        }                                                                                                              \
    } while (0)

/* Declare and begin an exported function, because C requires a prototype of an external function. */
#define IBP_DEFINE(exported, ...)                                                                                      \
    IBP_EXPORT int exported(__VA_ARGS__);                                                                              \
    IBP_EXPORT int exported(__VA_ARGS__)

/* Begin a wrapper of an MPI-4 call for large counts, which is not exported (large_calls.h). */
extern IBP_INTERNAL const struct ibp_replacements ibp_large_trampolines, ibp_large_one_sided;
#define IBP_LARGE(function) ibp_large_##function
#define IBP_DEFINE_LARGE(function, ...) static int IBP_LARGE(function)(__VA_ARGS__)

#endif
