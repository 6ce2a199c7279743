/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Copies of a recording from the node's own storage to its destination, at the interval IBPROF_FLUSH.
 */
#ifndef IBPROF_COUNTING_FLUSH_H
#define IBPROF_COUNTING_FLUSH_H

/* Begin copying, if there is anything to copy. */
void ibp_flush_open(void);

#endif
