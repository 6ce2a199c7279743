/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Copies of the recording from the storage of the node to its destination, at intervals of IBPROF_FLUSH seconds.
 */
#ifndef IBPROF_COUNTING_FLUSH_H
#define IBPROF_COUNTING_FLUSH_H

/* Begin periodic copies, if IBPROF_FLUSH is set and the recording is on the node's storage. */
void ibp_flush_open(void);

#endif
