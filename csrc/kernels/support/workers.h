/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#ifndef IBP_WORKERS_H
#define IBP_WORKERS_H

/* Call `work` on up to `threads` threads at once, this one among them, and come back when all have. The work is to be
 * taken in parts from the context, since there may be fewer threads than were asked for. */
void ibp_run_workers(unsigned threads, void (*work)(void *context), void *context);

#endif
