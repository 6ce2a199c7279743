/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The symbols of the CPython interpreter of this process: in the program, or in a library.
 */
#ifndef IBPROF_PYTHON_SYMBOLS_H
#define IBPROF_PYTHON_SYMBOLS_H

#include <stdbool.h>

struct ibp_python_symbols {
    const void *runtime;   /* _PyRuntime; other interpreters lack it */
    unsigned long version; /* as in PY_VERSION_HEX; only the minor version for 3.9 and 3.10; 0 for older ones */
    /* PyGILState_GetThisThreadState: this thread's state, NULL for a thread without one. Takes no lock. */
    void *(*thread_state)(void);
    const void *code_type, *string_type, *bytes_type, *frame_type, *type_type;
};

/* Find `runtime`, and if it exists the other symbols; missing symbols are NULL. Return whether there is an
 * interpreter. */
bool ibp_python_find_symbols(struct ibp_python_symbols *symbols);

#endif
