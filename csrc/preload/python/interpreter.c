/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "python/interpreter.h"
#include "python/verification.h"

struct ibp_interpreter ibp_interpreter;

static bool change_state(enum ibp_interpreter_state from, enum ibp_interpreter_state to)
{
    return __atomic_compare_exchange_n(&ibp_interpreter.state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static enum ibp_interpreter_state seek(struct ibp_interpreter *into)
{
    if (!ibp_python_find_symbols(&into->symbols)) return IBP_INTERPRETER_ABSENT;
    return ibp_python_layout(&into->layout, into->symbols.version, into->symbols.runtime) &&
                   ibp_verify_symbols(&into->symbols, &into->layout)
               ? IBP_INTERPRETER_FOUND
               : IBP_INTERPRETER_UNKNOWN;
}

static void verify(void)
{
    enum ibp_frames frames = ibp_verify_frames(&ibp_interpreter.symbols, &ibp_interpreter.layout);

    if (frames != IBP_FRAMES_NONE)
        change_state(IBP_INTERPRETER_FOUND,
                     frames == IBP_FRAMES_SOUND ? IBP_INTERPRETER_VERIFIED : IBP_INTERPRETER_UNKNOWN);
}

bool ibp_interpreter_prepare(void)
{
    if (change_state(IBP_INTERPRETER_UNSOUGHT, IBP_INTERPRETER_BEING_SOUGHT))
        change_state(IBP_INTERPRETER_BEING_SOUGHT, seek(&ibp_interpreter));
    if (__atomic_load_n(&ibp_interpreter.state, __ATOMIC_ACQUIRE) == IBP_INTERPRETER_FOUND) verify();
    return __atomic_load_n(&ibp_interpreter.state, __ATOMIC_ACQUIRE) == IBP_INTERPRETER_VERIFIED;
}

void ibp_interpreter_seek_again(void)
{
    change_state(IBP_INTERPRETER_ABSENT, IBP_INTERPRETER_UNSOUGHT);
}
