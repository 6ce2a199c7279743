/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Finds the shared part of a request by messages of this process to itself, and tests whether Open MPI uses it as
 * expected.
 */
#ifndef IBPROF_SOURCES_OPENMPI_COMPLETION_PROBE_H
#define IBPROF_SOURCES_OPENMPI_COMPLETION_PROBE_H

#include <stdbool.h>

/* Find the layout of requests by sending this process two messages of IBP_PROBE_BYTES bytes under IBP_PROBE_TAG.
 * Return whether received bytes can be seen. */
#define IBP_PROBE_BYTES 7
#define IBP_PROBE_TAG 23063
#define IBP_PROBE_MESSAGES 2
bool ibp_openmpi_completion_probe(void);

#endif
