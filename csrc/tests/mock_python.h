/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A library with the symbols of CPython, and memory that a test fills.
 */
#ifndef IBPROF_MOCK_PYTHON_H
#define IBPROF_MOCK_PYTHON_H

#include <stdint.h>

struct mock_python {
    uint64_t *runtime, *code_type, *string_type, *bytes_type, *frame_type, *type_type;
    unsigned long *version;
    void *thread; /* this thread's state */
};

#endif
