/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What a message that goes through Open MPI's table is: which operation it belongs to, and which peer it goes to.
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

/* Finds out what a message is; `otherwise` is its operation outside of any wrapped call. */
struct ibp_openmpi_message ibp_openmpi_classify(ibp_handle communicator, int rank, int tag, unsigned otherwise);

/* Operations by mode of a send, which is synchronous, complete, buffered, ready or standard (mca_pml_base_send_mode_t). */
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
