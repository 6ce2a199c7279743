/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Which source this MPI's bytes are seen by, and IBPROF_SOURCE.
 */
#ifndef IBPROF_CALLS_SOURCE_CHOICE_H
#define IBPROF_CALLS_SOURCE_CHOICE_H

#include "sources/source.h"

#include <stddef.h>

/* Says what IBPROF_SOURCE names that is none, and what there is; empty when it is well. */
void ibp_sources_describe_unknown(char *unknown, size_t bytes);

/* Hooks into what MPI is about to make. */
void ibp_sources_prepare(void);

/* Attaches one of the sources that this MPI can have, or the one that IBPROF_SOURCE names. NULL, with the reason in `why` and
 * all taken back, when there is none. */
const struct ibp_source_operations *ibp_sources_choose(char *why, size_t why_bytes);

#endif
