/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls that never return: a program's error handler, or its reduction, leaves them by longjmp or by a C++ exception. What the
 * thread sends next is not theirs.
 *
 * Nothing is done for it on the way of a call but that its frame is kept. An unwinder tells us when it takes the frame of a
 * wrapper off the stack, because such a frame names a function of ours to be asked, as one of C++ names its language's; and
 * the program's calls of longjmp and its kin lead to us before they go on.
 */
#ifndef IBPROF_CALLS_NON_LOCAL_EXITS_H
#define IBPROF_CALLS_NON_LOCAL_EXITS_H

/* Puts us before longjmp, in all that is loaded; once. */
void ibp_interpose_longjmp(void);

#endif
