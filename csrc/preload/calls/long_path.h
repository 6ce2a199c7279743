/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The long path of wrappers of MPI calls. A call takes the long path if the short path (trampolines.c) cannot do the
 * necessary work. Examples: times are recorded, several threads are in MPI, the call has an internal tag, or the site
 * is new. All wrappers share the code of the long path, and pass their arguments as an array.
 */
#ifndef IBPROF_CALLS_LONG_PATH_H
#define IBPROF_CALLS_LONG_PATH_H

#include "platform/system.h"

/* The forms of an operation's wrapper: MPI_X, PMPI_X, MPI_X_c, MPIX_X, PMPIX_X. */
enum ibp_form { IBP_FORM_MPI, IBP_FORM_PMPI, IBP_FORM_LARGE, IBP_FORM_MPIX, IBP_FORM_PMPIX, IBP_FORMS = 8 };

#define IBP_WRAPPER(operation, form) ((unsigned)(operation) * IBP_FORMS + (form))

/* Make a call. `next`: address of the pointer to the next function; the pointer is set at the first call. In a wrapper
 * with choices (struct ibp_choices), the pointer to the chosen function follows in memory. `arguments`: the arguments
 * of the call, in order. `caller`: the return address of the wrapper. Return the result of the function;
 * IBP_MISSING_CALL if the MPI library lacks the function. */
int ibp_long_path(unsigned wrapper, void *next, const long *arguments, const void *caller);

/* Functions that do a wrapper's work, and call the next function (of the MPI library or another tool). A wrapper of a
 * send or a timed call calls one of these functions, or the next function directly. */
struct ibp_choices {
    /* Used while times are recorded. `whole`: for a call that another tool wraps too. The call is timed from entry to
     * return, so that the call's time includes MPI calls of the tool. `timed`: for all other calls. */
    void *timed, *whole;
    /* Used while wrappers of sends must set the current call (ibp_labels_sends). NULL for calls that do not send. */
    void *label;
    /* Used while call sites are recorded and times are not, if the source can distinguish MPI_Send from MPI_Ssend. NULL
     * for calls that do not send. */
    void *site;
    /* Used instead of `site` while several threads may be in MPI. */
    void *among_threads;
};

/* Set the chosen function of a wrapper. The choice depends on whether times and sites are recorded at present. */
void ibp_choose(unsigned wrapper, void *next, const struct ibp_choices *choices);

/* Call ibp_choose for all wrappers (trampolines.c). */
void ibp_wrappers_choose(void);

#endif
