/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#ifndef IBP_WORKERS_H
#define IBP_WORKERS_H

/* Call `work` on up to `threads` threads at the same time, including the calling thread, and return when all have
 * returned. Each thread takes parts of the work from the context, because fewer threads may start than requested. */
void ibp_run_workers(unsigned threads, void (*work)(void *context), void *context);

#endif
