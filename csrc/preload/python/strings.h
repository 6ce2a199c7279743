/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Conversion of Python's strings to UTF-8.
 */
#ifndef IBPROF_PYTHON_STRINGS_H
#define IBPROF_PYTHON_STRINGS_H

#include "python/layout.h"

#include <stdbool.h>
#include <stddef.h>

/* Copy a string as UTF-8, ended by NUL. If bytes of a path are no valid UTF-8, these bytes remain as they are on disk.
 * If the string is too long, copy `...` and the end of the string. If the object is no string, return false and write
 * an empty string. */
bool ibp_python_string(const struct ibp_python_layout *layout, const void *string, char *into, size_t bytes);

#endif
