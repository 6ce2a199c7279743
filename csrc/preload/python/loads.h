/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Reads of members of the interpreter's objects, by offset.
 */
#ifndef IBPROF_PYTHON_LOADS_H
#define IBPROF_PYTHON_LOADS_H

#include <stdint.h>
#include <string.h>

static inline const char *ibp_load_pointer(const char *object, uint16_t offset)
{
    const char *value;

    memcpy(&value, object + offset, sizeof value);
    return value;
}

static inline int64_t ibp_load_int64(const char *object, uint16_t offset)
{
    int64_t value;

    memcpy(&value, object + offset, sizeof value);
    return value;
}

static inline int32_t ibp_load_int32(const char *object, uint16_t offset)
{
    int32_t value;

    memcpy(&value, object + offset, sizeof value);
    return value;
}

/* Return a reference without its lowest bits, which CPython uses as tags. */
static inline const char *ibp_load_reference(const char *object, uint16_t offset)
{
    return (const char *)((uintptr_t)ibp_load_pointer(object, offset) & ~(uintptr_t)7);
}

#endif
