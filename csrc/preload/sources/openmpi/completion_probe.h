/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The probe that finds the layout of Open MPI's requests (struct ibp_openmpi_request).
 */
#ifndef IBPROF_SOURCES_OPENMPI_COMPLETION_PROBE_H
#define IBPROF_SOURCES_OPENMPI_COMPLETION_PROBE_H

#include <stdbool.h>

/* Find the layout of requests, and test the callback, by two messages of IBP_PROBE_BYTES bytes with IBP_PROBE_TAG to
 * this process. Return whether ibprof can record received bytes. */
#define IBP_PROBE_BYTES 7
#define IBP_PROBE_TAG 23063
#define IBP_PROBE_MESSAGES 2
bool ibp_openmpi_completion_probe(void);

#endif
