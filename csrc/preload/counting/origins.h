/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Origins: numbers that stand for (region, operation, site). Whatever is counted names its origin, so that a message
 * needs one number of the call that sends it.
 */
#ifndef IBPROF_COUNTING_ORIGINS_H
#define IBPROF_COUNTING_ORIGINS_H

#include "platform/system.h"

#include "ibprof_recording.h"

#include <stdint.h>

#define IBP_REGIONS_MAX 8192
#define IBP_ORIGIN_BITS 24
/* The origin of operations without memory for another one; it has no record. */
#define IBP_ORIGIN_UNKNOWN ((1U << IBP_ORIGIN_BITS) - 1)

#define IBP_OPERATIONS_MAX 256

/* Of the present region: the number of each operation's origin without a site, from 1; 0 where it is not known. What
 * arrives counts there, since any later call may complete it. */
extern IBP_INTERNAL uint32_t ibp_origins_without_site[IBP_OPERATIONS_MAX];

/* Enter a region. */
void ibp_origins_enter(uint32_t region);

/* Return the number of the origin of an operation at a site in the present region, made if needed. */
uint32_t ibp_origin_at_site(unsigned operation, uint32_t site);

/* Return how many there are: the largest number. */
uint32_t ibp_origins_count(void);

/* The record of an origin's time; NULL until it is set. */
struct ibp_time *ibp_origin_time(uint32_t origin);
void ibp_origin_set_time(uint32_t origin, struct ibp_time *time);

/* Return the number of the same origin in another region, made if needed. */
uint32_t ibp_origin_moved(uint32_t origin, uint32_t region);

uint32_t ibp_origin_region(uint32_t origin);

/* Return the index of the record of the same origin in region `into`, if that of an index is in region `from`; else the
 * same index. */
uint32_t ibp_origin_record_moved(uint32_t record, uint32_t from, uint32_t into);

/* Return the index of an origin's record; UINT32_MAX when there was no space for it. */
uint32_t ibp_origin_record(uint32_t origin);

#endif
