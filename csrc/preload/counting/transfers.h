/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The recording of work requests: pairs of ports, and what was posted between them.
 *
 * Posting threads only ever add to records of their own, which say nothing of regions and never move; whoever changes the
 * region notes what was added meanwhile. So a post takes no lock, needs no atomic addition, and no total is ever wrong,
 * whenever the process is killed. Finding pairs and amounts wants the lock of verbs (verbs_lock.h) held.
 */
#ifndef IBPROF_COUNTING_TRANSFERS_H
#define IBPROF_COUNTING_TRANSFERS_H

#include "ibprof_recording.h"

#include <stdint.h>

#define IBP_OPCODES 4
#define IBP_WRITER_SHARED 0
#define IBP_NO_PAIR UINT32_MAX

/* Begins with no pairs. */
void ibp_transfers_open(struct ibp_process *process);

/* Notes queue pairs that are made for posting past verbs (1), and those that post by it after all (-1). */
void ibp_transfers_note_unseen(int queue_pairs);

/* The number of a pair, which is entered in the recording if it is new; IBP_NO_PAIR when there is no room. */
uint32_t ibp_transfers_pair(const struct ibp_pair *pair);

/* Where a thread adds up bytes and messages that it posts. IBP_WRITER_SHARED stands for all threads that have no number;
 * they add atomically. Never NULL: without room, what is counted is counted as lost. */
uint64_t *ibp_transfers_amount(uint32_t pair, enum ibp_opcode opcode, uint32_t writer);

/* From now on another region is open: what was posted since the last change belongs to the one before. Any thread may be
 * posting meanwhile. */
void ibp_transfers_enter(uint32_t region);

/* Gives what is noted for one region to another. */
void ibp_transfers_move(uint32_t from, uint32_t into);

#endif
