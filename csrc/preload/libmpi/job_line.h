/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The one line that a job may print on stderr.
 */
#ifndef IBPROF_LIBMPI_JOB_LINE_H
#define IBPROF_LIBMPI_JOB_LINE_H

/* Prints the line, unless there was one; in other ranks than the first only where the user asked for more. */
void ibp_say_once_a_job(const char *about, const char *text);

#endif
