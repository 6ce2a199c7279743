/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Loaded objects: the program and its libraries.
 */
#ifndef IBPROF_PLATFORM_LOADED_OBJECTS_H
#define IBPROF_PLATFORM_LOADED_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Return whether this process has a dynamic linker, which can list the loaded objects. A static program may have no
 * dynamic linker. */
bool ibp_can_visit_objects(void);

/* Call `visit` for each object until `visit` returns a value other than 0. Return the value that `visit` returned last.
 * Signals are blocked meanwhile: if a signal handler left this function by longjmp, the dynamic linker's lock would
 * never be released. */
int ibp_visit_objects(int (*visit)(struct dl_phdr_info *info, size_t bytes, void *into), void *into);

/* Return how many objects were unloaded so far. If the number has grown, other objects may have been loaded at
 * addresses that ibprof remembers. */
unsigned long long ibp_objects_unloaded(void);

#endif
