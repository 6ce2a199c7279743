/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The identity of a process's run, and the name of its recording.
 */
#ifndef IBPROF_RECORDING_OUTPUT_H
#define IBPROF_RECORDING_OUTPUT_H

#include "ibprof_recording.h"

#include <stddef.h>

/* Set host, job, launch, run and library. All other members become 0. */
void ibp_output_identify(struct ibp_file_header *identity);

/* Create the folder that IBPROF_OUTPUT names, and write its absolute path to `folder`. docs/environment.md lists the
 * patterns in IBPROF_OUTPUT. Return 0 or an errno. */
int ibp_output_make_folder(const char *output, const struct ibp_file_header *identity, char *folder, size_t bytes);

/* Write the stem of the file's name. Each launch has a different stem. On a host, all processes of a launch have the
 * same stem. */
void ibp_output_stem(const struct ibp_file_header *identity, char *stem, size_t bytes);

#endif
