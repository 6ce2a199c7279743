/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of the one-sided calls, which may go past every layer where messages can be seen. What they move is counted from
 * their arguments: bytes put are sent, bytes got are fetched, since the target takes no part. What MPI sends to bring them
 * about is counted as control messages where it shows.
 */
#include "system.h"
#include "communicators.h"
#include "counters.h"
#include "current.h"
#include "lifecycle.h"
#include "next.h"
#include "operations.h"

/* MPI_NO_OP sends nothing of the origin's. Its handle is an object's address in Open MPI. */
static bool is_no_op(ibp_handle operation)
{
    static ibp_handle no_op;

    if (!no_op && ibp_mpi.abi == IBP_ABI_MPICH) no_op = 0x5800000e;
    if (!no_op && ibp_mpi.abi == IBP_ABI_STANDARD) no_op = 0x3d;
    if (!no_op) no_op = (ibp_handle)ibp_mpi_symbol("ompi_mpi_op_no_op");
    return no_op && IBP_HANDLE(operation) == no_op;
}

static void count(unsigned operation, enum ibp_direction direction, ibp_handle window, int target, uint64_t bytes)
{
    const struct ibp_communicator *group;
    uint32_t peer;

    if (target < 0 || !ibp_counting || !ibp_operation_wanted[operation]) return; /* MPI_PROC_NULL */
    ibp_lock();
    group = ibp_window_find(IBP_HANDLE(window));
    peer = ibp_communicator_peer(group, target);
    ibp_unlock();
    ibp_count(operation, IBP_KIND_USER, direction, peer, bytes);
}

/* One wrapper: `counting` says what the arguments move, with `operation`, `sent` and `fetched` at hand. */
#define ONE_SIDED(exported, name, parameters, arguments, counting)                                                     \
    IBP_DEFINE(exported, UNPACK parameters)                                                                            \
    {                                                                                                                  \
        static int (*next)(UNPACK parameters);                                                                         \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #exported);                                                                                \
        if (!ibp_is_active() || ibp_current.operation) return next arguments;                                          \
        ibp_enter((struct ibp_current){.operation = IBP_OPERATION_##name, .kind = IBP_CALL_BLOCKING});                 \
        result = next arguments;                                                                                       \
        if (!result) {                                                                                                 \
            counting;                                                                                                  \
        }                                                                                                              \
        ibp_leave();                                                                                                   \
        return result;                                                                                                 \
    }
#define UNPACK(...) __VA_ARGS__
#define BOTH_NAMES(name, parameters, arguments, counting)                                                              \
    ONE_SIDED(MPI_##name, name, parameters, arguments, counting)                                                       \
    ONE_SIDED(PMPI_##name, name, parameters, arguments, counting)

#define SENT(items, type)                                                                                              \
    count(ibp_current.operation, IBP_DIRECTION_SENT, window, target, ibp_mpi_bytes((uint64_t)(items), type))
#define FETCHED(items, type)                                                                                           \
    count(ibp_current.operation, IBP_DIRECTION_FETCHED, window, target, ibp_mpi_bytes((uint64_t)(items), type))

BOTH_NAMES(Put,
           (const void *origin, int items, ibp_handle type, int target, ibp_handle place, int target_items,
            ibp_handle target_type, ibp_handle window),
           (origin, items, type, target, place, target_items, target_type, window), SENT(items, type))

BOTH_NAMES(Rput,
           (const void *origin, int items, ibp_handle type, int target, ibp_handle place, int target_items,
            ibp_handle target_type, ibp_handle window, void *request),
           (origin, items, type, target, place, target_items, target_type, window, request), SENT(items, type))

BOTH_NAMES(Get,
           (void *origin, int items, ibp_handle type, int target, ibp_handle place, int target_items,
            ibp_handle target_type, ibp_handle window),
           (origin, items, type, target, place, target_items, target_type, window), FETCHED(items, type))

BOTH_NAMES(Rget,
           (void *origin, int items, ibp_handle type, int target, ibp_handle place, int target_items,
            ibp_handle target_type, ibp_handle window, void *request),
           (origin, items, type, target, place, target_items, target_type, window, request), FETCHED(items, type))

BOTH_NAMES(Accumulate,
           (const void *origin, int items, ibp_handle type, int target, ibp_handle place, int target_items,
            ibp_handle target_type, ibp_handle operation, ibp_handle window),
           (origin, items, type, target, place, target_items, target_type, operation, window), SENT(items, type))

BOTH_NAMES(Raccumulate,
           (const void *origin, int items, ibp_handle type, int target, ibp_handle place, int target_items,
            ibp_handle target_type, ibp_handle operation, ibp_handle window, void *request),
           (origin, items, type, target, place, target_items, target_type, operation, window, request),
           SENT(items, type))

#define EXCHANGED                                                                                                      \
    do {                                                                                                               \
        if (!is_no_op(operation)) SENT(items, type);                                                                   \
        FETCHED(target_items, target_type);                                                                            \
    } while (0)

BOTH_NAMES(Get_accumulate,
           (const void *origin, int items, ibp_handle type, void *result_address, int result_items,
            ibp_handle result_type, int target, ibp_handle place, int target_items, ibp_handle target_type,
            ibp_handle operation, ibp_handle window),
           (origin, items, type, result_address, result_items, result_type, target, place, target_items, target_type,
            operation, window),
           EXCHANGED)

BOTH_NAMES(Rget_accumulate,
           (const void *origin, int items, ibp_handle type, void *result_address, int result_items,
            ibp_handle result_type, int target, ibp_handle place, int target_items, ibp_handle target_type,
            ibp_handle operation, ibp_handle window, void *request),
           (origin, items, type, result_address, result_items, result_type, target, place, target_items, target_type,
            operation, window, request),
           EXCHANGED)

BOTH_NAMES(
    Fetch_and_op,
    (const void *origin, void *result_address, ibp_handle type, int target, ibp_handle place, ibp_handle operation,
     ibp_handle window),
    (origin, result_address, type, target, place, operation, window), do {
        if (!is_no_op(operation)) SENT(1, type);
        FETCHED(1, type);
    } while (0))

BOTH_NAMES(
    Compare_and_swap,
    (const void *origin, const void *compared, void *result_address, ibp_handle type, int target, ibp_handle place,
     ibp_handle window),
    (origin, compared, result_address, type, target, place, window), do {
        SENT(2, type); /* the new value and the one to compare with */
        FETCHED(1, type);
    } while (0))
