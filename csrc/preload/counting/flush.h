/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * IBPROF_FLUSH: copies a recording from the node's own storage to its destination from time to time.
 */
#ifndef IBPROF_COUNTING_FLUSH_H
#define IBPROF_COUNTING_FLUSH_H

/* Begin, where there is anything to copy. */
void ibp_flush_open(void);

#endif
