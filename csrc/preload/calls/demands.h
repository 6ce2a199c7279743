/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The positions of the arguments that determine a call's bytes. They are constants in each wrapper: compilers evaluate
 * the array, so that a call outside of the ledger costs nothing.
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

/* The positions of each operation's arguments. */
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

/* Return whether a name is the name of a function for large counts. */
#define IBP_IS_LARGE(function)                                                                                         \
    (sizeof #function > 3 && #function[sizeof #function - 3] == '_' && #function[sizeof #function - 2] == 'c')

#endif
