/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Open MPI's progress loop: calls that wait call opal_progress again and again.
 */
#ifndef IBPROF_SOURCES_OPENMPI_PROGRESS_H
#define IBPROF_SOURCES_OPENMPI_PROGRESS_H

/* Hook the loop so that it reads the clock, if the user wants times. */
void ibp_openmpi_progress_hook(void);

#endif
