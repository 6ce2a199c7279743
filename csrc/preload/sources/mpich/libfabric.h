/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The source in libfabric, for MPICH and Intel MPI.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_H

#include "sources/source.h"

extern const struct ibp_source_operations ibp_source_libfabric;

#endif
