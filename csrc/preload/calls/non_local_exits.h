/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Non-local exits: an error handler or a reduction function of the program leaves an MPI call by longjmp or by a C++
 * exception. Later messages of the thread must not count for that call.
 *
 * To notice this, a call only stores the address of its frame. An exception calls the personality routine of each
 * wrapper's frame that it removes (counting/current_call.h). Calls of longjmp and its variants are redirected to hooks.
 */
#ifndef IBPROF_CALLS_NON_LOCAL_EXITS_H
#define IBPROF_CALLS_NON_LOCAL_EXITS_H

/* Interpose longjmp in every loaded object (idempotent). */
void ibp_interpose_longjmp(void);

#endif
