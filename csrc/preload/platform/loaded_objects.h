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

/* Visit the objects until a visit returns other than 0, and return that; 0 where none can be visited.
 * Signals wait until the end: a handler that leaves by longjmp would keep the dynamic linker's lock for ever. */
int ibp_visit_objects(int (*visit)(struct dl_phdr_info *info, size_t bytes, void *into), void *into);

/* Return how many objects were unloaded so far: their addresses may be another object's from then on. */
unsigned long long ibp_objects_unloaded(void);

#endif
