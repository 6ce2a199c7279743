/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Verification of an interpreter's layout on its own objects, before the layout is used. Reads of unmapped memory do no
 * harm.
 */
#ifndef IBPROF_PYTHON_VERIFICATION_H
#define IBPROF_PYTHON_VERIFICATION_H

#include "python/layout.h"
#include "python/symbols.h"

#include <stdbool.h>

enum ibp_frames {
    IBP_FRAMES_NONE, /* this thread executes no Python at the moment */
    IBP_FRAMES_SOUND,
    IBP_FRAMES_UNSOUND,
};

/* Return whether all symbols exist, and the type of code objects agrees with the layout. */
bool ibp_verify_symbols(const struct ibp_python_symbols *symbols, const struct ibp_python_layout *layout);

/* Check this thread's innermost frames. */
enum ibp_frames ibp_verify_frames(const struct ibp_python_symbols *symbols, const struct ibp_python_layout *layout);

#endif
