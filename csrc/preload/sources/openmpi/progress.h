/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Open MPI's progress loop: calls that wait call opal_progress again and again.
 */
#ifndef IBPROF_SOURCES_OPENMPI_PROGRESS_H
#define IBPROF_SOURCES_OPENMPI_PROGRESS_H

/* Read the clock in the loop, if times are wanted. */
void ibp_openmpi_progress_hook(void);

#endif
