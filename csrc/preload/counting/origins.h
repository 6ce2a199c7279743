/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Origins: each combination of region, operation and site has a number. Keys of counters contain the number of the
 * sending call's origin.
 */
#ifndef IBPROF_COUNTING_ORIGINS_H
#define IBPROF_COUNTING_ORIGINS_H

#include "platform/system.h"

#include "ibprof_recording.h"

#include <stdint.h>

#define IBP_REGIONS_MAX 8192
#define IBP_ORIGIN_BITS 24
/* If memory is exhausted, data that need a new origin are counted for this origin, which has no record. */
#define IBP_ORIGIN_UNKNOWN ((1U << IBP_ORIGIN_BITS) - 1)

#define IBP_OPERATIONS_MAX 256

/* For each operation: the number, from 1, of the origin without a site in the present region; 0 before its creation.
 * Received bytes have these origins, because a later call at any site may complete the receive. */
extern IBP_INTERNAL uint32_t ibp_origins_without_site[IBP_OPERATIONS_MAX];

void ibp_origins_enter(uint32_t region);

/* Return the number of the origin of an operation at a site in the present region, created if needed. */
uint32_t ibp_origin_at_site(unsigned operation, uint32_t site);

/* Return the number of origins. Origins are numbered from 1. */
uint32_t ibp_origins_count(void);

/* Return the time record of an origin; NULL before the time record is set. */
struct ibp_time *ibp_origin_time(uint32_t origin);
void ibp_origin_set_time(uint32_t origin, struct ibp_time *time);

/* Return the number of the origin with the same operation and site in another region, created if needed. */
uint32_t ibp_origin_moved(uint32_t origin, uint32_t region);

uint32_t ibp_origin_region(uint32_t origin);

/* `record`: index of an origin's record. If the origin is in region `from`, return the index of the record with the
 * same operation and site in region `into`. Otherwise return `record`. */
uint32_t ibp_origin_record_moved(uint32_t record, uint32_t from, uint32_t into);

/* Return the index of an origin's record; UINT32_MAX if the origin has no record. */
uint32_t ibp_origin_record(uint32_t origin);

#endif
