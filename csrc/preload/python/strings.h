/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Python's strings as UTF-8.
 */
#ifndef IBPROF_PYTHON_STRINGS_H
#define IBPROF_PYTHON_STRINGS_H

#include "python/layout.h"

#include <stdbool.h>
#include <stddef.h>

/* Copy a string in UTF-8, terminated. Bytes of a path that are not UTF-8 are copied as they are on disk. For a string
 * that does not fit, `...` and its end are copied. For any other object, return false and an empty string. */
bool ibp_python_string(const struct ibp_python_layout *layout, const void *string, char *into, size_t bytes);

#endif
