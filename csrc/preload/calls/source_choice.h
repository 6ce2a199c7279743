/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The choice of the source by which this MPI's bytes are seen, and IBPROF_SOURCE.
 */
#ifndef IBPROF_CALLS_SOURCE_CHOICE_H
#define IBPROF_CALLS_SOURCE_CHOICE_H

#include "sources/source.h"

#include <stddef.h>

/* Write which unknown name IBPROF_SOURCE contains, and the known names; an empty text if it is valid. */
void ibp_sources_describe_unknown(char *unknown, size_t bytes);

/* Hook objects that MPI is about to make. */
void ibp_sources_prepare(void);

/* Attach one of the sources of this MPI, or the one that IBPROF_SOURCE names. Return NULL, with the reason in `why`
 * and all hooks removed, when none attaches. */
const struct ibp_source_operations *ibp_sources_choose(char *why, size_t why_bytes);

#endif
