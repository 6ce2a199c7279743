/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * libibprof_kernels.so: the loops that are too slow in Python. Each header describes one subject and is the only
 * description of what the library exports for it. Python declares the headers to cffi in the order of the includes
 * below. It uses the text between the two marker lines of each header: plain structs, enums, integer defines and
 * prototypes.
 *
 * Conventions. Calls return 0 or a negative errno unless they say otherwise. The caller owns all arrays and passes
 * their lengths; no call writes beyond them. Calls print nothing and keep state only in their arguments, so several
 * threads may call at the same time.
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
