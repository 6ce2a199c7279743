/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Recorded work requests: pairs of ports, and what was posted between them.
 *
 * A posting thread only adds to its own records, which have no region and never move. The thread that changes the
 * region records the bytes added since the last change. So a post takes no lock and needs no atomic addition, and
 * totals are right whenever the process is killed. Finding pairs and amounts needs the lock of verbs (verbs_lock.h).
 */
#ifndef IBPROF_COUNTING_TRANSFERS_H
#define IBPROF_COUNTING_TRANSFERS_H

#include "ibprof_recording.h"

#include <stdint.h>

#define IBP_OPCODES 4
#define IBP_WRITER_SHARED 0
#define IBP_NO_PAIR UINT32_MAX

/* Begin without pairs. */
void ibp_transfers_open(struct ibp_process *process);

/* Count queue pairs that were created for posting outside of verbs (1). Subtract queue pairs that post through verbs
 * after all (-1). */
void ibp_transfers_note_unseen(int queue_pairs);

/* Return the number of a pair, recorded if it is new; IBP_NO_PAIR without space. */
uint32_t ibp_transfers_pair(const struct ibp_pair *pair);

/* Return the counter of a thread's posted bytes and messages. IBP_WRITER_SHARED stands for all threads
 * without a number, which add atomically. Never NULL: without space, bytes are counted as lost. */
uint64_t *ibp_transfers_amount(uint32_t pair, enum ibp_opcode opcode, uint32_t writer);

/* Enter a region. Requests posted since the last change belong to the former region. Threads may be posting at the same
 * time. */
void ibp_transfers_enter(uint32_t region);

/* Move the records of one region to another. */
void ibp_transfers_move(uint32_t from, uint32_t into);

#endif
