/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Safe reads of this process's memory, at addresses that may be unmapped.
 */
#ifndef IBPROF_PLATFORM_GUARDED_READ_H
#define IBPROF_PLATFORM_GUARDED_READ_H

#include <stdbool.h>
#include <stddef.h>

/* Copy memory by a system call. Return false if a part of the memory is unreadable, or if the system forbids this
 * system call. */
bool ibp_read_guarded(void *into, const void *address, size_t bytes);

#endif
