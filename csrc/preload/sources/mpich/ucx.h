/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The source in UCX (UCP), for MPICH and Intel MPI.
 */
#ifndef IBPROF_SOURCES_MPICH_UCX_H
#define IBPROF_SOURCES_MPICH_UCX_H

#include "sources/source.h"

extern const struct ibp_source_operations ibp_source_ucx;

#endif
