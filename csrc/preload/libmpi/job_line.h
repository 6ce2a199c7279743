/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The line that a job may print on stderr. A job prints at most one line, so that its output stays readable.
 */
#ifndef IBPROF_LIBMPI_JOB_LINE_H
#define IBPROF_LIBMPI_JOB_LINE_H

/* Print "ibprof: ABOUT: TEXT" on rank 0, unless rank 0 has already printed a line by this function. With
 * IBPROF_VERBOSE, each rank prints all lines. */
void ibp_say_once_a_job(const char *about, const char *text);

#endif
