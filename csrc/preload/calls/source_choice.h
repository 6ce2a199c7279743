/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The choice of this MPI's source of bytes, and IBPROF_SOURCE.
 */
#ifndef IBPROF_CALLS_SOURCE_CHOICE_H
#define IBPROF_CALLS_SOURCE_CHOICE_H

#include "sources/source.h"

#include <stddef.h>

/* Write the unknown name in IBPROF_SOURCE, and the known names; write an empty text for a valid value. */
void ibp_sources_describe_unknown(char *unknown, size_t bytes);

/* Hook objects before MPI creates them. */
void ibp_sources_prepare(void);

/* Attach a source of this MPI, or the source that IBPROF_SOURCE names. Return NULL when none attaches, with the reason
 * in `why` and all hooks removed. */
const struct ibp_source_operations *ibp_sources_choose(char *why, size_t why_bytes);

#endif
