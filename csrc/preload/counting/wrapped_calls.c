/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/wrapped_calls.h"

#define NO_COMMUNICATOR IBP_NO_COMMUNICATOR
#define NEEDS_WAITING IBP_HAS_CHOICES | IBP_IS_ONLY_TIMED | IBP_WAITS_IN_PROGRESS
#define NEEDS_POLLING IBP_HAS_CHOICES | IBP_IS_ONLY_TIMED
#define NEEDS_LONG IBP_HAS_CHOICES

const struct ibp_wrapped_call ibp_wrapped_calls[IBP_OPERATIONS + 1] = {
#define IBP_CALL(name, arguments, kind, communicator)                                                                  \
    [IBP_OPERATION_##name] = {arguments, IBP_CALL_##kind, communicator,                                                \
                              IBP_NEEDS_OF(IBP_OPERATION_##name, IBP_CALL_##kind)},
#define IBP_SEND(name, arguments, communicator)                                                                        \
    [IBP_OPERATION_##name] = {arguments, IBP_CALL_SENDING, communicator,                                               \
                              IBP_HAS_CHOICES | IBP_SENDS | IBP_WAITS_IN_PROGRESS},
#define IBP_SEND_INIT(name, arguments, communicator)                                                                   \
    [IBP_OPERATION_##name] = {arguments, IBP_CALL_SENDING, communicator,                                               \
                              IBP_HAS_CHOICES | IBP_SENDS | IBP_KEEPS_REQUEST | IBP_WAITS_IN_PROGRESS},
#define IBP_TIMED(name, arguments, duration)                                                                           \
    [IBP_OPERATION_##name] = {arguments, IBP_CALL_BLOCKING, NO_COMMUNICATOR, NEEDS_##duration},
#define IBP_POINT_TO_POINT(name)
#include "mpi.def"
#undef IBP_CALL
#undef IBP_POINT_TO_POINT
/* Operations with hand-written wrappers. */
#define WAITS(name) [IBP_OPERATION_##name] = {.communicator = NO_COMMUNICATOR, .needs = IBP_WAITS_IN_PROGRESS},
    WAITS(Put) WAITS(Get) WAITS(Rput) WAITS(Rget) WAITS(Accumulate) WAITS(Raccumulate) WAITS(Start) WAITS(Startall)};
