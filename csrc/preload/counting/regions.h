/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Regions of the program, and the marks that delimit them.
 *
 * Region 0 is open from the start. Each call of IBPROF_REGION() or ibprof_region() moves data from region 0 to a named
 * region: the data that were counted since the previous call.
 */
#ifndef IBPROF_COUNTING_REGIONS_H
#define IBPROF_COUNTING_REGIONS_H

#include <stdbool.h>

/* Record region 0. Return 0 or a negative errno. */
int ibp_regions_open(void);

/* Implement ibprof_region, ibprof_region_begin and ibprof_region_end of ibprof.h. The process must have a recording. */
void ibp_region_close(const char *name);
void ibp_region_begin(const char *name);
void ibp_region_end(void);

void ibp_regions_close(void);

/* Record that counting is switched on or off now. */
void ibp_regions_switch(bool on);

#endif
