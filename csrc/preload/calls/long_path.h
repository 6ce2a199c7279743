/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The long path of wrappers of MPI calls. A call takes the long path if several threads are in MPI, if times are
 * recorded, if MPI uses an internal tag for the call, or if the call is the first at its site. All wrappers share the
 * code of the long path, and pass their arguments as an array. With a copy of this code in each of four hundred
 * wrappers, the copies would be most of the library.
 */
#ifndef IBPROF_CALLS_LONG_PATH_H
#define IBPROF_CALLS_LONG_PATH_H

#include "platform/system.h"

/* The forms of an operation's wrapper: MPI_X, PMPI_X, MPI_X_c, MPIX_X, PMPIX_X. */
enum ibp_form { IBP_FORM_MPI, IBP_FORM_PMPI, IBP_FORM_LARGE, IBP_FORM_MPIX, IBP_FORM_PMPIX, IBP_FORMS = 8 };

/* The number of a wrapper. */
#define IBP_WRAPPER(operation, form) ((unsigned)(operation) * IBP_FORMS + (form))

/* Make a call.
 *
 *   next        the address of the pointer to the next function, which is set at the first call. In a wrapper with
 *               choices (below), the pointer to the chosen function follows.
 *   arguments   the arguments of the call, in order
 *   caller      the return address of the wrapper
 *
 * Return the result of the function; IBP_MISSING_CALL if MPI does not have the function. */
int ibp_long_path(unsigned wrapper, void *next, const long *arguments, const void *caller);

/* Functions that call the next function, which is the MPI library's or another tool's. A wrapper of a sending or timed
 * call calls one of these functions, or the next function directly. */
struct ibp_choices {
    /* Used while times are recorded. `timed`: for most calls. `whole`: for calls that another tool wraps too. Such a
     * call is timed as a whole, so that ibprof recognises calls of the tool's wrapper as parts of it. */
    void *timed, *whole;
    /* While wrappers of sends must set the current call (ibp_labels_sends). NULL for calls that do not send. */
    void *label;
    /* While sites are recorded but not times, and the source sees the mode of sends. NULL for calls that do not
     * send. */
    void *site;
    /* As `site`, with several threads in MPI. */
    void *among_threads;
};

/* Set the function that a wrapper calls. The choice depends on whether times and sites are recorded now. */
void ibp_choose(unsigned wrapper, void *next, const struct ibp_choices *choices);

/* Set the functions of all wrappers by ibp_choose (trampolines.c). */
void ibp_wrappers_choose(void);

#endif
