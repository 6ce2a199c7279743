/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Non-local exits: an error handler or a reduction function of the program leaves an MPI call by longjmp or a C++
 * exception. After a non-local exit, the thread's messages must not count for the call that the program has left.
 *
 * Each wrapper stores the address of its stack frame. When an exception removes the frame of a wrapper, the unwinder
 * calls the wrapper's personality routine (counting/current_call.h). Calls of longjmp and its variants are redirected
 * to hooks.
 */
#ifndef IBPROF_CALLS_NON_LOCAL_EXITS_H
#define IBPROF_CALLS_NON_LOCAL_EXITS_H

/* Redirect the calls of longjmp in every loaded object (idempotent). */
void ibp_interpose_longjmp(void);

#endif
