/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Non-local exits: an error handler or a reduction of the program leaves an MPI call by longjmp or by a C++ exception.
 * The thread's next messages do not belong to that call.
 *
 * A call only stores its frame. An unwinder reports the removal of a wrapper's frame, because the frame names a
 * personality routine (counting/current_call.h). Calls of longjmp and its variants are redirected to hooks.
 */
#ifndef IBPROF_CALLS_NON_LOCAL_EXITS_H
#define IBPROF_CALLS_NON_LOCAL_EXITS_H

/* Interpose longjmp in every loaded object (idempotent). */
void ibp_interpose_longjmp(void);

#endif
