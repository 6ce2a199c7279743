/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The CPython interpreter of this process, if its frames can be read. ibprof does not read other interpreters (PyPy,
 * GraalPy), unknown versions, or interpreters whose objects differ from the expected layout.
 */
#ifndef IBPROF_PYTHON_INTERPRETER_H
#define IBPROF_PYTHON_INTERPRETER_H

#include "platform/system.h"
#include "python/layout.h"
#include "python/symbols.h"

#include <stdbool.h>

enum ibp_interpreter_state {
    IBP_INTERPRETER_UNSOUGHT,
    IBP_INTERPRETER_BEING_SOUGHT, /* another thread is looking for it */
    IBP_INTERPRETER_ABSENT,
    IBP_INTERPRETER_UNKNOWN, /* there is one, but it cannot be read */
    IBP_INTERPRETER_FOUND,   /* its frames have not been verified */
    IBP_INTERPRETER_VERIFIED,
};

struct ibp_interpreter {
    enum ibp_interpreter_state state;
    struct ibp_python_symbols symbols;
    struct ibp_python_layout layout;
};

IBP_INTERNAL extern struct ibp_interpreter ibp_interpreter;

/* Find and verify the interpreter, once. Return whether frames of this thread can be read. */
bool ibp_interpreter_prepare(void);

/* The same, but cheap once the interpreter is verified. */
static inline bool ibp_interpreter_ready(void)
{
    return IBP_LIKELY(__atomic_load_n(&ibp_interpreter.state, __ATOMIC_ACQUIRE) == IBP_INTERPRETER_VERIFIED) ||
           ibp_interpreter_prepare();
}

/* Look for an interpreter again, if none was found. */
void ibp_interpreter_seek_again(void);

#endif
