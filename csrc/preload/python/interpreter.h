/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The CPython interpreter of this process. Frames are read only if ibprof knows the interpreter's version, and if
 * objects have the expected layout. Frames of other interpreters, such as PyPy and GraalPy, are not read.
 */
#ifndef IBPROF_PYTHON_INTERPRETER_H
#define IBPROF_PYTHON_INTERPRETER_H

#include "platform/system.h"
#include "python/layout.h"
#include "python/symbols.h"

#include <stdbool.h>

enum ibp_interpreter_state {
    IBP_INTERPRETER_UNSOUGHT,
    IBP_INTERPRETER_BEING_SOUGHT, /* another thread is looking for an interpreter */
    IBP_INTERPRETER_ABSENT,
    IBP_INTERPRETER_UNKNOWN, /* an interpreter that ibprof cannot read */
    IBP_INTERPRETER_FOUND,   /* frames are not verified yet */
    IBP_INTERPRETER_VERIFIED,
};

struct ibp_interpreter {
    enum ibp_interpreter_state state;
    struct ibp_python_symbols symbols;
    struct ibp_python_layout layout;
};

IBP_INTERNAL extern struct ibp_interpreter ibp_interpreter;

/* Find and verify the interpreter at the first call. Return whether frames of this thread can be read. */
bool ibp_interpreter_prepare(void);

/* Like ibp_interpreter_prepare, but fast if the interpreter is already verified. */
static inline bool ibp_interpreter_ready(void)
{
    return IBP_LIKELY(__atomic_load_n(&ibp_interpreter.state, __ATOMIC_ACQUIRE) == IBP_INTERPRETER_VERIFIED) ||
           ibp_interpreter_prepare();
}

/* If no interpreter was found, search again at the next call. */
void ibp_interpreter_seek_again(void);

#endif
