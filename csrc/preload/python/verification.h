/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Checks an interpreter's layout on its own objects before anything is read by it. Memory that is not mapped is no
 * harm.
 */
#ifndef IBPROF_PYTHON_VERIFICATION_H
#define IBPROF_PYTHON_VERIFICATION_H

#include "python/layout.h"
#include "python/symbols.h"

#include <stdbool.h>

enum ibp_frames {
    IBP_FRAMES_NONE, /* this thread executes no Python now */
    IBP_FRAMES_SOUND,
    IBP_FRAMES_UNSOUND,
};

/* Return whether all symbols exist, and the type of code objects looks as the layout says. */
bool ibp_verify_symbols(const struct ibp_python_symbols *symbols, const struct ibp_python_layout *layout);

/* Check this thread's innermost frames. */
enum ibp_frames ibp_verify_frames(const struct ibp_python_symbols *symbols, const struct ibp_python_layout *layout);

#endif
