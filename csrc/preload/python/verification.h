/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Verification of a layout with objects of the running interpreter, before ibprof uses the layout. A wrong layout may
 * lead to reads of unmapped memory. Therefore the verification uses guarded reads (platform/guarded_read.h).
 */
#ifndef IBPROF_PYTHON_VERIFICATION_H
#define IBPROF_PYTHON_VERIFICATION_H

#include "python/layout.h"
#include "python/symbols.h"

#include <stdbool.h>

enum ibp_frames {
    IBP_FRAMES_NONE, /* this thread executes no Python code now */
    IBP_FRAMES_SOUND,
    IBP_FRAMES_UNSOUND,
};

/* Return whether all symbols exist, and the type of code objects has the size that the layout expects. */
bool ibp_verify_symbols(const struct ibp_python_symbols *symbols, const struct ibp_python_layout *layout);

enum ibp_frames ibp_verify_frames(const struct ibp_python_symbols *symbols, const struct ibp_python_layout *layout);

#endif
