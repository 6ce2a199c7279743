/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The probe that finds the members that all requests share, by messages from this process to itself. It also tests
 * whether Open MPI uses them as expected.
 */
#ifndef IBPROF_SOURCES_OPENMPI_COMPLETION_PROBE_H
#define IBPROF_SOURCES_OPENMPI_COMPLETION_PROBE_H

#include <stdbool.h>

/* Find the layout of requests by two messages of IBP_PROBE_BYTES bytes with IBP_PROBE_TAG to this process. Return
 * whether received bytes can be recorded. */
#define IBP_PROBE_BYTES 7
#define IBP_PROBE_TAG 23063
#define IBP_PROBE_MESSAGES 2
bool ibp_openmpi_completion_probe(void);

#endif
