/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Macros for hand-written wrappers. The next function of a wrapper has the wrapper's name. Without ibprof, the program
 * would call the next function.
 */
#ifndef IBPROF_CALLS_WRAPPER_H
#define IBPROF_CALLS_WRAPPER_H

#include "libmpi/got.h"
#include "libmpi/library.h"
#include "platform/system.h"

#include <string.h>

/* The error code that ibprof's wrapper returns if the MPI library lacks the function. No MPI library uses this error
 * code, and programs treat the code as a failure. The stubs of mpi4py for missing functions return the same error
 * code. */
#define IBP_MISSING_CALL (-1431655766)

/* At the first call, find the next function and store it in `next`. If the MPI library lacks the function, return
 * IBP_MISSING_CALL from the wrapper. */
#define IBP_FIND_NEXT(next, exported)                                                                                  \
    do {                                                                                                               \
        if (IBP_UNLIKELY(!(next))) {                                                                                   \
            void *found_ = ibp_mpi_next(exported);                                                                     \
                                                                                                                       \
            if (!found_) return IBP_MISSING_CALL;                                                                      \
            memcpy(&(next), &found_, sizeof(next));                                                                    \
        }                                                                                                              \
    } while (0)

/* Declare an exported function and begin its definition. The declaration avoids a warning about a missing prototype. */
#define IBP_DEFINE(exported, ...)                                                                                      \
    IBP_EXPORT int exported(__VA_ARGS__);                                                                              \
    IBP_EXPORT int exported(__VA_ARGS__)

/* Begin a wrapper of an MPI-4 function with 64-bit counts. The wrapper is not exported (large_calls.h). */
extern IBP_INTERNAL const struct ibp_replacements ibp_large_trampolines, ibp_large_one_sided;
#define IBP_LARGE(function) ibp_large_##function
#define IBP_DEFINE_LARGE(function, ...) static int IBP_LARGE(function)(__VA_ARGS__)

#endif
