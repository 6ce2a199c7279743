/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Positions of the arguments that determine the bytes of a call. The compiler replaces elements of `ibp_demand_places`
 * with constants in each wrapper. So if the bytes of a call are not entered in the ledger (counting/ledger.h), its
 * wrapper checks nothing at run time.
 */
#ifndef IBPROF_CALLS_DEMANDS_H
#define IBPROF_CALLS_DEMANDS_H

#include "counting/current_call.h"
#include "counting/ledger.h"
#include "recording/operations.h"

#include <stdbool.h>
#include <stdint.h>

struct ibp_demand_places {
    uint8_t shape; /* enum ibp_demand_shape */
    int8_t items, type, root;
};

/* For each operation: positions, from 0, of the arguments that determine the bytes of a call (enum
 * ibp_demand_shape). */
static const struct ibp_demand_places ibp_demand_places[IBP_OPERATIONS + 1] = {
#define IBP_DEMAND_OF(name, nonblocking, shape, items, type, root)                                                     \
    [IBP_OPERATION_##name] = {IBP_DEMAND_##shape, items, type, root},                                                  \
    [IBP_OPERATION_##nonblocking] = {IBP_DEMAND_##shape, items, type, root},                                           \
    [IBP_OPERATION_##name##_init] = {IBP_DEMAND_##shape, items, type, root},
#define IBP_DEMAND_OF_SEND(name) [IBP_OPERATION_##name] = {IBP_DEMAND_PEER, 1, 2, 3},
#include "calls/demands.def"
#undef IBP_DEMAND_OF
#undef IBP_DEMAND_OF_SEND
};

/* Expand to true if a function has 64-bit counts (MPI_Send_c). */
#define IBP_IS_LARGE(function)                                                                                         \
    (sizeof #function > 3 && #function[sizeof #function - 3] == '_' && #function[sizeof #function - 2] == 'c')

#endif
