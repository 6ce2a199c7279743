/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/context.h"

#define LOWEST_TAG_OF_USERS (-1) /* MPI_ANY_TAG */

struct ibp_context ibp_outside, ibp_within[IBP_OPERATIONS + 1];
struct ibp_context *ibp_here = &ibp_within[IBP_OPERATION_NONE], *ibp_between = &ibp_within[IBP_OPERATION_NONE];

int ibp_lowest_tag_within;

/* Counters that have a peer, to be forgotten. */
static struct ibp_recent *used[3 * (IBP_OPERATIONS + 2)];
static unsigned used_count;

static struct ibp_recent recent_of(unsigned operation)
{
    return (struct ibp_recent){.peer = IBP_NO_PEER, .operation = (uint16_t)operation};
}

static struct ibp_context context_of(ibp_handle world, int lowest_tag, unsigned send, unsigned isend, unsigned receive)
{
    return (struct ibp_context){
        .sent_on = ibp_operation_wanted[send] || ibp_operation_wanted[isend] ? world : 0,
        .received_on = ibp_operation_wanted[receive] ? world : 0,
        .lowest_tag = lowest_tag,
        .send = recent_of(send),
        .isend = recent_of(isend),
        .receive = recent_of(receive),
    };
}

static void set_all(ibp_handle world, struct ibp_context *between)
{
    used_count = 0;
    ibp_outside = context_of(world, LOWEST_TAG_OF_USERS, IBP_OPERATION_Send, IBP_OPERATION_Isend, IBP_OPERATION_Recv);
    for (unsigned operation = 0; operation <= IBP_OPERATIONS; operation++)
        ibp_within[operation] = context_of(world, ibp_lowest_tag_within, operation, operation, operation);
    ibp_between = between;
    ibp_set_here(between);
}

void ibp_contexts_open(ibp_handle world)
{
    set_all(world, &ibp_outside);
    /* Messages that set up partitioned requests do not carry their data. */
    ibp_within[IBP_OPERATION_Psend_init].sent_on = 0;
    ibp_within[IBP_OPERATION_Precv_init].received_on = 0;
}

void ibp_contexts_close(void)
{
    set_all(0, &ibp_within[IBP_OPERATION_NONE]);
}

void ibp_contexts_enter_region(uint32_t region)
{
    ibp_counters_enter(region);
    while (used_count) used[--used_count]->peer = IBP_NO_PEER;
}

void ibp_recent_set(struct ibp_recent *recent, const struct ibp_slot *slot, int peer)
{
    if (recent->peer == IBP_NO_PEER) used[used_count++] = recent;
    recent->amount = slot->amount;
    recent->bins = slot->bins;
    recent->peer = peer;
}
