/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * libibprof_kernels.so: the loops that are too slow in Python. Python passes the headers to cffi in the order of the
 * includes below. Python uses only the text between the two marker lines of each header: simple structs, enums, integer
 * constants and prototypes.
 *
 * Conventions: Unless stated otherwise, functions return 0 or a negative errno. The caller owns all arrays and passes
 * their lengths; no function writes beyond the end of an array. Functions use no global variables, so several threads
 * may call functions at the same time. Comments such as [rails][ports] state the dimensions of arrays.
 */
#ifndef IBPROF_KERNELS_H
#define IBPROF_KERNELS_H

#include "ibprof_kernels/sums.h"
#include "ibprof_kernels/routes.h"
#include "ibprof_kernels/spread.h"
#include "ibprof_kernels/text.h"
#include "ibprof_kernels/placement.h"
#include "ibprof_kernels/archive.h"
#include "ibprof_kernels/topology.h"
#include "ibprof_kernels/simulation.h"

#endif
