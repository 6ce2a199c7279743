/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The callers of the current function: return addresses, innermost first. The walk allocates no memory. The only lock
 * that it takes is the dynamic linker's, and the only library that it uses is libc. On x86-64, it finds frames by the
 * tables of .eh_frame, and by frame pointers in code without tables. On AArch64, it finds frames by frame pointers.
 * Other processors are not supported.
 *
 * The walk ends where the stack does not agree with the tables. It reads no memory outside of the stack.
 */
#ifndef IBPROF_PLATFORM_STACK_WALK_H
#define IBPROF_PLATFORM_STACK_WALK_H

#include <stdbool.h>

/* Allocate memory. Return false if it is exhausted, or if this processor is not supported. */
bool ibp_stack_walk_prepare(void);

/* Forget cached data of addresses, after objects were unloaded. */
void ibp_stack_walk_forget(void);

/* Called for each frame. `address`: the return address of the frame, or, in a function that a signal interrupted, the
 * address at which the function continues. The walk ends when the function returns false. */
typedef bool ibp_frame_seen(void *into, const void *address);

/* Walk the stack, beginning with the caller of this function. The outermost frame is left out, because the system
 * starts it and no function calls it. */
void ibp_stack_walk(ibp_frame_seen *seen, void *into);

#endif
