/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls that never return: a program's error handler, or its reduction, leaves them by longjmp or by a C++ exception. What the
 * thread sends next is not theirs.
 *
 * Nothing is done for it on the way of a call but that its frame is kept. An unwinder tells us when it takes the frame of a
 * wrapper off the stack, because such a frame names a function of ours to be asked, as one of C++ names its language's; and
 * the program's calls of longjmp and its kin lead to us before they go on.
 */
#ifndef IBPROF_LEFT_CALLS_H
#define IBPROF_LEFT_CALLS_H

#include "system.h"

#include <stdint.h>

/* Puts us before longjmp, in all that is loaded; once. */
void ibp_left_calls_open(void);

/* What an unwinder calls; see IBP_TELLS_UNWINDER. */
IBP_INTERNAL int ibp_unwound(int version, int actions, uint64_t language, void *exception, void *context);

/* Makes an unwinder call it for the frame of the function that this is in. Elsewhere exceptions are not noticed. */
#if defined(__x86_64__) || defined(__aarch64__)
#define IBP_TELLS_UNWINDER __asm__ volatile(".cfi_personality 0x1b, ibp_unwound") /* 0x1b: relative, 4 bytes */
#else
#define IBP_TELLS_UNWINDER ((void)0)
#endif

/* Where the stack ends now: all that was called before lies above. */
#if defined(__x86_64__)
register uintptr_t ibp_stack_end __asm__("rsp");
#elif defined(__aarch64__)
register uintptr_t ibp_stack_end __asm__("sp");
#else
#define ibp_stack_end ((uintptr_t)__builtin_frame_address(0))
#endif

#endif
