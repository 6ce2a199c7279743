/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The source of bytes in UCX (UCP), as MPICH and Intel MPI call it.
 */
#ifndef IBPROF_SOURCES_MPICH_UCX_H
#define IBPROF_SOURCES_MPICH_UCX_H

#include "sources/source.h"

extern const struct ibp_source_operations ibp_source_ucx;

#endif
