/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The long path of wrappers of MPI calls. It serves the calls that cannot take the short path: several threads are in
 * MPI, times are recorded, a call allocates an internal tag, or it is the first call of its kind. All wrappers share
 * the long path and pass their arguments as an array. A copy in each of four hundred wrappers would be most of the
 * library.
 */
#ifndef IBPROF_CALLS_LONG_PATH_H
#define IBPROF_CALLS_LONG_PATH_H

#include "platform/system.h"

/* The names that wrappers of an operation have: MPI_X, PMPI_X, MPI_X_c, MPIX_X, PMPIX_X. */
enum ibp_form { IBP_FORM_MPI, IBP_FORM_PMPI, IBP_FORM_LARGE, IBP_FORM_MPIX, IBP_FORM_PMPIX, IBP_FORMS = 8 };

/* The number of a wrapper. */
#define IBP_WRAPPER(operation, form) ((unsigned)(operation) * IBP_FORMS + (form))

/* Make a call.
 *
 *   next        the address of the pointer to the next function of the wrapper's name, which is set if it is not. In a
 *               call that has choices (below), the pointer to the chosen function follows.
 *   arguments   of the call, in order
 *   caller      where the wrapper returns to
 *
 * Return what the function returns; IBP_MISSING_CALL where there is none. */
int ibp_long_path(unsigned wrapper, void *next, const long *arguments, const void *caller);

/* Functions that a wrapper of a sending or timed call may call: the next function, or a function that runs before
 * it. */
struct ibp_choices {
    /* While times are recorded: `timed` for most calls; `whole` for calls that another tool also wraps, so that the
     * tool's inner calls are recognised as parts of them. */
    void *timed, *whole;
    /* Where sends are labelled; NULL for other calls. */
    void *label;
    /* For a call whose send mode the source sees, but not its site; NULL for other calls. */
    void *site;
    /* As `site`, while several threads are in MPI. */
    void *among_threads;
};

/* Set the function that a wrapper calls, according to what is recorded now. */
void ibp_choose(unsigned wrapper, void *next, const struct ibp_choices *choices);

/* Set the functions of all wrappers by ibp_choose (trampolines.c). */
void ibp_wrappers_choose(void);

#endif
