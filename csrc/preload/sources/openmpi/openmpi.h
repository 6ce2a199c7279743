/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The source in Open MPI: hooks in Open MPI's table of point-to-point functions (table.h).
 */
#ifndef IBPROF_SOURCES_OPENMPI_OPENMPI_H
#define IBPROF_SOURCES_OPENMPI_OPENMPI_H

#include "sources/source.h"

extern const struct ibp_source_operations ibp_source_openmpi;

/* The same source for programs that call Open MPI through a library that translates handles. */
extern const struct ibp_source_operations ibp_source_openmpi_behind_layer;

#endif
