/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Wrappers of one-sided calls. Messages of these calls may bypass every layer that ibprof hooks. Therefore ibprof
 * counts the bytes of one-sided calls from the arguments of the calls. The target makes no call, so the origin counts
 * all bytes: MPI_Put sends bytes, and MPI_Get fetches bytes. If a source sees messages of one-sided calls, the messages
 * count as control messages, because the origin counts the bytes.
 */
#include "platform/system.h"
#include "calls/wrapper.h"
#include "counting/calls.h"
#include "counting/count.h"
#include "counting/current_call.h"
#include "counting/times.h"
#include "libmpi/communicators.h"
#include "libmpi/datatypes.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "sources/source.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Return whether an operation is MPI_NO_OP, with which the origin sends no data. In Open MPI, the handle of MPI_NO_OP
 * is the address of an object. */
static bool is_no_op(ibp_handle operation)
{
    static ibp_handle no_op;

    if (!no_op && ibp_mpi.abi == IBP_ABI_MPICH) no_op = 0x5800000e;
    if (!no_op && ibp_mpi.abi == IBP_ABI_STANDARD) no_op = 0x3d;
    if (!no_op) no_op = (ibp_handle)ibp_mpi_symbol("ompi_mpi_op_no_op");
    return no_op && IBP_HANDLE(operation) == no_op;
}

/* Count the bytes of a one-sided call. A call with target MPI_PROC_NULL, or with invalid arguments, moves no bytes.
 * Invalid arguments are not passed to other MPI functions, because MPICH would report such arguments to the program's
 * error handler. */
static void count(unsigned operation, enum ibp_direction direction, ibp_handle window, int target, int64_t items,
                  ibp_handle type)
{
    const struct ibp_communicator *group;
    bool is_member;
    uint32_t peer;

    if (ibp_mpi.is_behind_layer || target < 0 || items < 0 || ibp_mpi_is_null(IBP_HANDLE(type)) ||
        ibp_mpi_is_null(IBP_HANDLE(window)))
        return;
    if (!ibp_counting || !ibp_source->source || !ibp_operation_wanted[operation]) return;
    ibp_lock();
    group = ibp_window_find(IBP_HANDLE(window));
    peer = ibp_communicator_peer(group, target);
    is_member = !group || !group->size || target < group->size;
    ibp_unlock();
    if (is_member) ibp_count(operation, IBP_KIND_USER, direction, peer, ibp_mpi_bytes((uint64_t)items, type));
}

/* Define a wrapper. `counting`: statements that count the bytes. `is_large`: true if the data are large
 * (counting/times.h). */
#define WRAPPER(define, function, name, parameters, arguments, is_large, counting)                                     \
    define(function, UNPACK parameters)                                                                                \
    {                                                                                                                  \
        static int (*next)(UNPACK parameters);                                                                         \
        struct ibp_timing timing;                                                                                      \
        int result;                                                                                                    \
                                                                                                                       \
        IBP_FIND_NEXT(next, #function);                                                                                \
        if (!ibp_is_active() || ibp_is_within_call()) return next arguments;                                           \
        ibp_enter(IBP_CALL_HERE(IBP_OPERATION_##name), (struct ibp_current_call){.kind = IBP_CALL_BLOCKING});          \
        ibp_timing_begin(&timing, ibp_current_call.call, is_large);                                                    \
        result = next arguments;                                                                                       \
        ibp_timing_end(&timing);                                                                                       \
        if (!result) {                                                                                                 \
            counting;                                                                                                  \
        }                                                                                                              \
        ibp_leave();                                                                                                   \
        return result;                                                                                                 \
    }
#define UNPACK(...) __VA_ARGS__

#define SENT(items, type) count(ibp_current_call.operation, IBP_DIRECTION_SENT, window, target, items, type)
#define FETCHED(items, type) count(ibp_current_call.operation, IBP_DIRECTION_FETCHED, window, target, items, type)
#define EXCHANGED                                                                                                      \
    do {                                                                                                               \
        if (!is_no_op(operation)) SENT(items, type);                                                                   \
        FETCHED(target_items, target_type);                                                                            \
    } while (0)

#define BOTH(name, parameters, arguments, is_large, counting)                                                          \
    WRAPPER(IBP_DEFINE, MPI_##name, name, parameters, arguments, is_large, counting)                                   \
    WRAPPER(IBP_DEFINE, PMPI_##name, name, parameters, arguments, is_large, counting)
#define IS_LARGE(name) ibp_is_large(IBP_OPERATION_##name, items, type)

#define ITEMS int
#define IBP_ONE_SIDED(name, parameters, arguments, counting) BOTH(name, parameters, arguments, IS_LARGE(name), counting)
#define IBP_ONE_SIDED_ITEM(name, parameters, arguments, counting) BOTH(name, parameters, arguments, false, counting)
#include "calls/onesided.def"
#undef ITEMS
#undef IBP_ONE_SIDED
#undef IBP_ONE_SIDED_ITEM

#define ITEMS int64_t
#define IBP_ONE_SIDED(name, parameters, arguments, counting)                                                           \
    WRAPPER(IBP_DEFINE_LARGE, MPI_##name##_c, name, parameters, arguments, IS_LARGE(name), counting)
#define IBP_ONE_SIDED_ITEM(...)
#include "calls/onesided.def"
#undef IBP_ONE_SIDED

#define IBP_ONE_SIDED(name, parameters, arguments, counting) {"MPI_" #name "_c", (void *)IBP_LARGE(MPI_##name##_c)},
static const struct ibp_replacement large_calls[] = {
#include "calls/onesided.def"
};

const struct ibp_replacements ibp_large_one_sided = {large_calls, sizeof large_calls / sizeof *large_calls};
