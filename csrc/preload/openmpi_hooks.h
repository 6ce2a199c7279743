/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The functions that stand in Open MPI's table while it is recorded, and what they share: which operation a message belongs
 * to, and which peer it goes to.
 */
#ifndef IBPROF_OPENMPI_HOOKS_H
#define IBPROF_OPENMPI_HOOKS_H

#include "current.h"
#include "openmpi_table.h"
#include "openmpi_tags.h"
#include "system.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

/* openmpi_sends.c */
ibp_openmpi_send_function ibp_openmpi_hook_send;
ibp_openmpi_isend_function ibp_openmpi_hook_isend;

/* The same for messages that look at the clock. */
ibp_openmpi_send_function ibp_openmpi_hook_send_ticking;
ibp_openmpi_isend_function ibp_openmpi_hook_isend_ticking;

/* Messages of the probe that passed through them before recording began. */
extern IBP_INTERNAL int ibp_openmpi_probes_seen;

/* openmpi_receives.c */
ibp_openmpi_recv_function ibp_openmpi_hook_recv;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv;
ibp_openmpi_mprobe_function ibp_openmpi_hook_mprobe;
ibp_openmpi_improbe_function ibp_openmpi_hook_improbe;
ibp_openmpi_mrecv_function ibp_openmpi_hook_mrecv;
ibp_openmpi_imrecv_function ibp_openmpi_hook_imrecv;

/* openmpi_persistent.c */
ibp_openmpi_isend_function ibp_openmpi_hook_isend_init;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv_init;
ibp_openmpi_start_function ibp_openmpi_hook_start;

/* And those of its functions that a source has for wrappers of MPI calls (source.h). */
void ibp_openmpi_before_start(size_t count, void **requests);
void ibp_openmpi_after_start(size_t count, void **requests, void *const *before);

/* -- what a message is ------------------------------------------------------------------------------------------------ */

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
