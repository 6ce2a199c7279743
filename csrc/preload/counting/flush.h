/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Every IBPROF_FLUSH seconds, copy the recording from the storage of the node to the destination.
 */
#ifndef IBPROF_COUNTING_FLUSH_H
#define IBPROF_COUNTING_FLUSH_H

/* Begin periodic copies, if the recording is on the node's storage and IBPROF_FLUSH is not 0. */
void ibp_flush_open(void);

#endif
