/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Symbols of the CPython interpreter of this process, in the program or in a library.
 */
#ifndef IBPROF_PYTHON_SYMBOLS_H
#define IBPROF_PYTHON_SYMBOLS_H

#include <stdbool.h>

struct ibp_python_symbols {
    const void *runtime;   /* _PyRuntime, which other interpreters lack */
    unsigned long version; /* like PY_VERSION_HEX, but without the patch level for 3.9 and 3.10; 0 before 3.9 */
    /* PyGILState_GetThisThreadState, which takes no lock. The function returns NULL if this thread has no thread
     * state. */
    void *(*thread_state)(void);
    const void *code_type, *string_type, *bytes_type, *frame_type, *type_type;
};

/* Find the symbol `runtime` and, if `runtime` exists, the other symbols. Missing symbols are NULL. Return whether the
 * process has a CPython interpreter. */
bool ibp_python_find_symbols(struct ibp_python_symbols *symbols);

#endif
