/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Partners of the ledger's demands, as numbers that fit into the key of a slot. A number is a rank of MPI_COMM_WORLD or
 * the number of a group.
 */
#ifndef IBPROF_COUNTING_PARTNERS_H
#define IBPROF_COUNTING_PARTNERS_H

#include "libmpi/communicators.h"

#include <stdint.h>

#define IBP_PARTNER_NUMBER_UNKNOWN 0xffffffff /* as IBP_PEER_UNKNOWN */
#define IBP_PARTNER_NUMBER_FAILED 0xfffffffe

/* Return the recorded form of a partner's number. */
uint64_t ibp_partner_of(uint32_t number);

/* Return the number of ranks in the group of a partner. */
int ibp_partner_size(uint32_t number);

/* Return the number of a communicator's group. It is unknown for intercommunicators, and where a member is of another
 * job. */
uint32_t ibp_partner_group(struct ibp_communicator *communicator);

#endif
