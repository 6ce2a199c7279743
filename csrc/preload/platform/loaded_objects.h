/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The program and the libraries that are loaded.
 */
#ifndef IBPROF_PLATFORM_LOADED_OBJECTS_H
#define IBPROF_PLATFORM_LOADED_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Return whether objects can be visited: a static program may have no dynamic linker. */
bool ibp_can_visit_objects(void);

/* Visit the objects until a visit returns other than 0, and return that value; 0 where no object can be visited.
 * Signals are blocked meanwhile: a handler that leaves by longjmp would keep the dynamic linker's lock for ever. */
int ibp_visit_objects(int (*visit)(struct dl_phdr_info *info, size_t bytes, void *into), void *into);

/* Return the number of objects unloaded so far. Other objects may get their addresses. */
unsigned long long ibp_objects_unloaded(void);

#endif
