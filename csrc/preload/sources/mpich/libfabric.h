/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The calls that MPICH and its kin make to libfabric.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_H

#include "sources/source.h"

extern const struct ibp_source_operations ibp_source_libfabric;

#endif
