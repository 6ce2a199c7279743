/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Where the shared part of a request lies, and whether Open MPI does with it what is expected: found and tried with messages of
 * this process to itself.
 */
#ifndef IBPROF_SOURCES_OPENMPI_COMPLETION_PROBE_H
#define IBPROF_SOURCES_OPENMPI_COMPLETION_PROBE_H

#include <stdbool.h>

/* Finds the layout of requests; sends two messages to this process, each of IBP_PROBE_BYTES bytes under IBP_PROBE_TAG.
 * Returns whether received bytes can be seen. */
#define IBP_PROBE_BYTES 7
#define IBP_PROBE_TAG 23063
#define IBP_PROBE_MESSAGES 2
bool ibp_openmpi_completion_probe(void);

#endif
