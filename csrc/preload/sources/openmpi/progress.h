/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Open MPI's progress loop: a call that waits calls opal_progress repeatedly.
 */
#ifndef IBPROF_SOURCES_OPENMPI_PROGRESS_H
#define IBPROF_SOURCES_OPENMPI_PROGRESS_H

/* If IBPROF_TIME asks for times, hook the progress loop or the function in which threads wait. */
void ibp_openmpi_progress_hook(void);

#endif
