/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Classify a message that passes Open MPI's table: find its operation, its peer, and whether it is user data.
 */
#ifndef IBPROF_SOURCES_OPENMPI_CLASSIFY_H
#define IBPROF_SOURCES_OPENMPI_CLASSIFY_H

#include "counting/calls.h"
#include "counting/current_call.h"
#include "libmpi/library.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include "ibprof_recording.h"

#include <stdint.h>

#define IBP_OPENMPI_LOWEST_USER_TAG (-1) /* MPI_ANY_TAG */

struct ibp_openmpi_message {
    unsigned operation;
    /* The call that started the message, if the tag shows this call; NULL if the present call sends the message. */
    struct ibp_call *call;
    enum ibp_kind kind;
    uint32_t peer;
};

/* Classify a message. `otherwise`: the operation of the application's messages outside of wrapped calls. */
struct ibp_openmpi_message ibp_openmpi_classify(ibp_handle communicator, int rank, int tag, unsigned otherwise);

/* With several threads in MPI: return the operation of a message; IBP_OPERATION_NONE if the message must be
 * classified. */
static inline unsigned ibp_openmpi_operation_among_threads(int tag, unsigned otherwise)
{
    const unsigned current = ibp_current_call.operation, operation = current ? current : otherwise;

    if (!ibp_is_active() || !ibp_counting) return IBP_OPERATION_NONE;
    if (tag < (current ? ibp_lowest_tag_within : IBP_OPENMPI_LOWEST_USER_TAG)) return IBP_OPERATION_NONE;
    if (current == IBP_OPERATION_Psend_init || current == IBP_OPERATION_Precv_init) return IBP_OPERATION_NONE;
    return ibp_operation_wanted[operation] ? operation : IBP_OPERATION_NONE;
}

/* Arrays of operations, indexed by the send mode (mca_pml_base_send_mode_t): synchronous, complete, buffered, ready,
 * standard. */
enum { IBP_OPENMPI_STANDARD_MODE = 4, IBP_OPENMPI_MODES = 8 };
#define IBP_OPENMPI_BY_MODE(standard, synchronous, buffered, ready)                                                    \
    {synchronous,                                                                                                      \
     standard,                                                                                                         \
     buffered,                                                                                                         \
     ready,                                                                                                            \
     standard,                                                                                                         \
     IBP_OPERATION_UNATTRIBUTED,                                                                                       \
     IBP_OPERATION_UNATTRIBUTED,                                                                                       \
     IBP_OPERATION_UNATTRIBUTED}

static inline unsigned ibp_openmpi_mode_operation(const uint16_t *operations, int mode)
{
    return operations[(unsigned)mode % IBP_OPENMPI_MODES];
}

static inline unsigned ibp_openmpi_blocking_operation(int mode)
{
    static const uint16_t operations[IBP_OPENMPI_MODES] =
        IBP_OPENMPI_BY_MODE(IBP_OPERATION_Send, IBP_OPERATION_Ssend, IBP_OPERATION_Bsend, IBP_OPERATION_Rsend);

    return ibp_openmpi_mode_operation(operations, mode);
}

static inline unsigned ibp_openmpi_nonblocking_operation(int mode)
{
    static const uint16_t operations[IBP_OPENMPI_MODES] =
        IBP_OPENMPI_BY_MODE(IBP_OPERATION_Isend, IBP_OPERATION_Issend, IBP_OPERATION_Ibsend, IBP_OPERATION_Irsend);

    return ibp_openmpi_mode_operation(operations, mode);
}

#endif
