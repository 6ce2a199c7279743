/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The source of bytes in Open MPI: hooks in its table of point-to-point calls (table.h).
 */
#ifndef IBPROF_SOURCES_OPENMPI_OPENMPI_H
#define IBPROF_SOURCES_OPENMPI_OPENMPI_H

#include "sources/source.h"

extern const struct ibp_source_operations ibp_source_openmpi;

/* The same for a program with handles of another ABI: it calls a library that translates them. */
extern const struct ibp_source_operations ibp_source_openmpi_behind_layer;

#endif
