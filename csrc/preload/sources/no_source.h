/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * In place of a source where none attaches: calls are recorded with their time, and no bytes.
 */
#ifndef IBPROF_SOURCES_NO_SOURCE_H
#define IBPROF_SOURCES_NO_SOURCE_H

#include "sources/source.h"

extern const struct ibp_source_operations ibp_no_source;

#endif
