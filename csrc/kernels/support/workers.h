/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#ifndef IBP_WORKERS_H
#define IBP_WORKERS_H

/* Call `work` on up to `threads` threads at the same time, including the calling thread. Return when all calls have
 * returned. Fewer than `threads` threads may start. So each call of `work` must process parts from `context` until no
 * part is left. */
void ibp_run_workers(unsigned threads, void (*work)(void *context), void *context);

#endif
