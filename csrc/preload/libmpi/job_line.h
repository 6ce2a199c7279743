/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The one line that a job may print on stderr.
 */
#ifndef IBPROF_LIBMPI_JOB_LINE_H
#define IBPROF_LIBMPI_JOB_LINE_H

/* Print the line, unless one was printed. Ranks other than the first print it only with IBPROF_VERBOSE. */
void ibp_say_once_a_job(const char *about, const char *text);

#endif
