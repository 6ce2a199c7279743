/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Regions of the program, and the marks that delimit them.
 *
 * Region 0 is open from the start on; IBPROF_REGION() gives what was counted there since the last one to a region of its own.
 */
#ifndef IBPROF_COUNTING_REGIONS_H
#define IBPROF_COUNTING_REGIONS_H

#include <stdbool.h>

/* Enters region 0 in the recording. Returns 0 or a negative errno. */
int ibp_regions_open(void);

/* What ibprof.h offers under like names, of a process that is recorded. */
void ibp_region_close(const char *name);
void ibp_region_begin(const char *name);
void ibp_region_end(void);

/* Closes what is open, at MPI_Finalize. */
void ibp_regions_close(void);

/* Switches counting on or off, and marks it. */
void ibp_regions_switch(bool on);

#endif
