/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Classification of messages in Open MPI's table: the operation and the peer of each.
 */
#ifndef IBPROF_SOURCES_OPENMPI_CLASSIFY_H
#define IBPROF_SOURCES_OPENMPI_CLASSIFY_H

#include "libmpi/library.h"
#include "recording/operations.h"

#include "ibprof_recording.h"

#include <stdint.h>

struct ibp_openmpi_message {
    unsigned operation;
    enum ibp_kind kind;
    uint32_t peer;
};

/* Classify a message; `otherwise` is its operation outside of any wrapped call. */
struct ibp_openmpi_message ibp_openmpi_classify(ibp_handle communicator, int rank, int tag, unsigned otherwise);

/* Operations by send mode: synchronous, complete, buffered, ready, standard (mca_pml_base_send_mode_t). */
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

#endif
