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

/* Copy a string in UTF-8, terminated. Bytes of a path that are no UTF-8 are copied as they are on disk. Of a string
 * that does not fit, `...` and its end are kept. Return false, and an empty string, for any other
 * object. */
bool ibp_python_string(const struct ibp_python_layout *layout, const void *string, char *into, size_t bytes);

#endif
