/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Copies of the recording from the node's storage to the destination, every IBPROF_FLUSH seconds.
 */
#ifndef IBPROF_COUNTING_FLUSH_H
#define IBPROF_COUNTING_FLUSH_H

/* Begin periodic copies, if the recording is on the node's storage and IBPROF_FLUSH is not 0. */
void ibp_flush_open(void);

#endif
