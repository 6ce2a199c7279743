/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Walk of the stack: the return addresses of the current function's callers, innermost first. The walk allocates no
 * memory, takes only the dynamic linker's lock, and uses only libc. On x86-64, the walk finds frames by the tables of
 * .eh_frame, and by frame pointers in code without tables. On AArch64, the walk uses frame pointers. Other processors
 * are not supported.
 *
 * The walk ends where the stack contradicts the tables. The walk reads no memory outside of the stack.
 */
#ifndef IBPROF_PLATFORM_STACK_WALK_H
#define IBPROF_PLATFORM_STACK_WALK_H

#include <stdbool.h>

/* Allocate memory. Return false if memory is exhausted, or if this processor is not supported. */
bool ibp_stack_walk_prepare(void);

/* After objects were unloaded: forget cached data of addresses. */
void ibp_stack_walk_forget(void);

/* Called for each frame. `address` is the frame's return address; for a function that a signal interrupted, the address
 * where the function continues. If the callback returns false, the walk ends. */
typedef bool ibp_frame_seen(void *into, const void *address);

/* Walk the stack, beginning with the caller of this function. The outermost frame is left out, because the system
 * starts it and no function calls it. */
void ibp_stack_walk(ibp_frame_seen *seen, void *into);

#endif
