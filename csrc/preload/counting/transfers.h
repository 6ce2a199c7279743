/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Recorded work requests: for each pair of ports, the bytes and messages that were posted to queue pairs between them.
 *
 * A thread that posts only adds to its own records, which have no region and never move. When a thread changes the
 * region, it assigns the bytes since the last change to the former region. So a post needs no lock and no atomic
 * addition, and the totals are right even if the process is killed. To find a pair or a counter, the verbs lock must be
 * held (verbs_lock.h).
 */
#ifndef IBPROF_COUNTING_TRANSFERS_H
#define IBPROF_COUNTING_TRANSFERS_H

#include "ibprof_recording.h"

#include <stdint.h>

#define IBP_OPCODES 4
#define IBP_WRITER_SHARED 0
#define IBP_NO_PAIR UINT32_MAX

/* Begin recording transfers. No pairs are known yet. */
void ibp_transfers_open(struct ibp_process *process);

/* Add a number of queue pairs whose posts ibprof does not see, because they bypass verbs. -1: a queue pair that was
 * counted here posts through verbs after all. */
void ibp_transfers_note_unseen(int queue_pairs);

/* Return the number of a pair. A new pair is recorded. Return IBP_NO_PAIR if the recording is full. */
uint32_t ibp_transfers_pair(const struct ibp_pair *pair);

/* Return the counter of a thread's posted bytes and messages. IBP_WRITER_SHARED stands for all threads without a
 * number, which must add atomically. Never NULL: if the recording is full, return the counter of lost bytes. */
uint64_t *ibp_transfers_amount(uint32_t pair, enum ibp_opcode opcode, uint32_t writer);

/* Enter a region. Work requests posted since the last change of the region belong to the former region. Threads may be
 * posting at the same time. */
void ibp_transfers_enter(uint32_t region);

/* Move the records of one region to another. */
void ibp_transfers_move(uint32_t from, uint32_t into);

#endif
