/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Sums of work requests. For each pair of ports: the bytes and messages that were posted to queue pairs which connect
 * the ports.
 *
 * A thread that posts adds only to its own records. These records have no region. Therefore a post needs no lock and no
 * atomic addition. When a thread changes the region, ibprof assigns all bytes posted since the last change to the
 * former region. Even if the process is killed, the total of a pair of ports is right. Hold the verbs lock
 * (verbs_lock.h) to find a pair or a counter.
 */
#ifndef IBPROF_COUNTING_TRANSFERS_H
#define IBPROF_COUNTING_TRANSFERS_H

#include "ibprof_recording.h"

#include <stdint.h>

#define IBP_OPCODES 4
#define IBP_WRITER_SHARED 0
#define IBP_NO_PAIR UINT32_MAX

void ibp_transfers_open(struct ibp_process *process);

/* Add to the number of queue pairs whose posts bypass verbs, so that ibprof does not see the posts. Add -1 when such a
 * queue pair posts through verbs. */
void ibp_transfers_note_unseen(int queue_pairs);

/* Return the index of a pair's record, created if needed; IBP_NO_PAIR if the recording is full or memory is
 * exhausted. */
uint32_t ibp_transfers_pair(const struct ibp_pair *pair);

/* Return the counter of a thread's posted bytes and messages. `writer`: number of the thread; IBP_WRITER_SHARED for
 * threads without a number. These threads share the counter, and must add atomically. If there is no space for the
 * counter, return the counter of lost bytes. */
uint64_t *ibp_transfers_amount(uint32_t pair, enum ibp_opcode opcode, uint32_t writer);

/* Enter a region. All work requests that were posted since the last change of the region are assigned to the former
 * region. Other threads may post at the same time. */
void ibp_transfers_enter(uint32_t region);

/* Move the work requests of region `from` to region `into`. */
void ibp_transfers_move(uint32_t from, uint32_t into);

#endif
