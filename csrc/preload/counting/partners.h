/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Partners of the ledger's demands. A partner in the recording has 64 bits (ibp_demand.partner). In the key of a slot,
 * a 32-bit number represents the partner. A partner is a rank of MPI_COMM_WORLD, or a group of processes.
 */
#ifndef IBPROF_COUNTING_PARTNERS_H
#define IBPROF_COUNTING_PARTNERS_H

#include "libmpi/communicators.h"

#include <stdint.h>

#define IBP_PARTNER_NUMBER_UNKNOWN 0xffffffff /* as IBP_PEER_UNKNOWN */
#define IBP_PARTNER_NUMBER_FAILED 0xfffffffe

/* Return the value of ibp_demand.partner for a partner's number. */
uint64_t ibp_partner_of(uint32_t number);

/* Return the number of ranks of the group that a partner's number represents. */
int ibp_partner_size(uint32_t number);

/* Return the number that represents a communicator's group as a partner. Return IBP_PARTNER_NUMBER_UNKNOWN for an
 * intercommunicator, for a group with unknown members or members of another job, and if there are too many members or
 * groups. */
uint32_t ibp_partner_group(struct ibp_communicator *communicator);

#endif
