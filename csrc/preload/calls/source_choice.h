/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The choice of a source (sources/source.h) for this MPI. IBPROF_SOURCE may name the source.
 */
#ifndef IBPROF_CALLS_SOURCE_CHOICE_H
#define IBPROF_CALLS_SOURCE_CHOICE_H

#include "sources/source.h"

#include <stddef.h>

/* If IBPROF_SOURCE has an unknown value, write the value and the known values to `unknown`. Otherwise write an empty
 * text. */
void ibp_sources_describe_unknown(char *unknown, size_t bytes);

/* Install those hooks of sources that must exist before MPI is initialised. */
void ibp_sources_prepare(void);

/* Attach a source of this MPI, or the source that IBPROF_SOURCE names. If no source can attach, remove all hooks, write
 * the reason to `why` and return NULL. */
const struct ibp_source_operations *ibp_sources_choose(char *why, size_t why_bytes);

#endif
