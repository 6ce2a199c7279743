/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The callers of the current function: return addresses, innermost first. The walk allocates nothing, takes only the
 * dynamic linker's lock, and uses only libc. On x86-64 frames are found by the tables of .eh_frame, and by frame
 * pointers in code without tables. On AArch64 they are found by frame pointers, and on other machines not at all.
 *
 * The walk ends where the stack contradicts the tables. It reads nothing outside of the stack's memory.
 */
#ifndef IBPROF_PLATFORM_STACK_WALK_H
#define IBPROF_PLATFORM_STACK_WALK_H

#include <stdbool.h>

/* Reserve memory. Return false where there is none, or where stacks cannot be walked. */
bool ibp_stack_walk_prepare(void);

/* Forget known addresses after objects were unloaded. */
void ibp_stack_walk_forget(void);

/* Called with a return address, or with the address at which an interrupted function continues. The walk ends when it
 * returns false. */
typedef bool ibp_frame_seen(void *into, const void *address);

/* Walk from the caller of this function. Outermost frames, which the system starts and nothing calls, are left out. */
void ibp_stack_walk(ibp_frame_seen *seen, void *into);

#endif
