/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/context.h"
#include "counting/counters.h"
#include "libmpi/datatypes.h"

#include <limits.h>

struct ibp_context ibp_outside;
struct ibp_context *ibp_here = &ibp_outside, *ibp_between = &ibp_outside;

int ibp_lowest_tag_within;

ibp_handle ibp_contexts_world;

/* List of the `ibp_recent` elements that have a peer or an origin. */
static struct ibp_recent *used;

void ibp_recents_forget(void)
{
    for (struct ibp_recent *next; used; used = next) {
        next = used->next;
        used->peer = IBP_NO_PEER;
        used->origin = 0;
        used->is_listed = false;
    }
}

static void list(struct ibp_recent *recent)
{
    if (recent->is_listed) return;
    recent->is_listed = true;
    recent->next = used;
    used = recent;
}

void ibp_recent_set(struct ibp_recent *recent, const struct ibp_slot *slot, int peer)
{
    list(recent);
    recent->amount = slot->amount;
    recent->bins = slot->bins;
    recent->peer = peer;
    recent->origin = ibp_key_origin(slot->key);
}

uint32_t ibp_context_origin(const struct ibp_context *context, struct ibp_recent *recent)
{
    if (!recent->origin) {
        recent->origin = ibp_origin_at_site(recent->operation, context->site);
        list(recent);
    }
    return recent->origin;
}

/* -- calls whose last message was on another communicator ---------------------------------------------------------- */

static struct ibp_context *moved;

void ibp_context_move(struct ibp_context *context, ibp_handle communicator)
{
    if (context->sent_on == communicator) return;
    context->sent_on = communicator;
    context->send.peer = context->isend.peer = IBP_NO_PEER;
    if (context->is_moved) return;
    context->is_moved = true;
    context->next = moved;
    moved = context;
}

void ibp_contexts_move_back(void)
{
    for (; moved; moved = moved->next) {
        moved->is_moved = false;
        if (moved->sent_on) moved->sent_on = ibp_contexts_world;
        moved->send.peer = moved->isend.peer = IBP_NO_PEER;
    }
}

/* -- beginning ------------------------------------------------------------------------------------------- */

void ibp_recent_begin(struct ibp_recent *recent, unsigned operation)
{
    recent->peer = IBP_NO_PEER;
    recent->operation = (uint16_t)operation;
}

/* Always classify messages inside MPI_Psend_init and MPI_Precv_init, because the messages are no user data: they set up
 * the request. */
void ibp_context_set_open(struct ibp_context *context, int lowest_tag)
{
    const unsigned send = context->send.operation, receive = context->receive.operation;
    const bool is_sent = ibp_operation_wanted[send] || ibp_operation_wanted[context->isend.operation];

    context->sent_on = ibp_datatype_size_offset && is_sent && send != IBP_OPERATION_Psend_init ? ibp_contexts_world : 0;
    context->received_on =
        ibp_operation_wanted[receive] && receive != IBP_OPERATION_Precv_init ? ibp_contexts_world : 0;
    context->lowest_tag = ibp_contexts_world ? lowest_tag : INT_MAX;
}

void ibp_context_begin(struct ibp_context *context, unsigned operation, uint32_t site, bool is_outside)
{
    context->site = site;
    context->is_outside = is_outside && ibp_contexts_world;
    ibp_recent_begin(&context->send, operation);
    ibp_recent_begin(&context->isend, operation);
    ibp_recent_begin(&context->receive, is_outside ? IBP_OPERATION_Recv : operation);
    ibp_context_set_open(context, is_outside ? IBP_LOWEST_TAG_OF_USERS : ibp_lowest_tag_within);
}
