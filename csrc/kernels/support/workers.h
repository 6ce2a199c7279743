/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#ifndef IBP_WORKERS_H
#define IBP_WORKERS_H

/* Call `work` on up to `threads` threads at the same time, the caller among them, and return when all have returned.
 * Each takes parts of the work from the context, since fewer threads may start than requested. */
void ibp_run_workers(unsigned threads, void (*work)(void *context), void *context);

#endif
