/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/contexts.h"
#include "counting/calls.h"
#include "counting/context.h"
#include "counting/ledger.h"
#include "counting/origins.h"
#include "counting/repeats.h"
#include "counting/times.h"
#include "recording/operations.h"

void ibp_contexts_set(ibp_handle world)
{
    struct ibp_call *call = NULL;

    ibp_contexts_world = world;
    ibp_repeats_take_back();
    ibp_recents_forget();
    ibp_contexts_move_back();
    ibp_context_begin(&ibp_outside, IBP_OPERATION_Send, IBP_SITE_UNKNOWN, true);
    ibp_outside.is_of_standard_mode = true;
    ibp_recent_begin(&ibp_outside.isend, IBP_OPERATION_Isend);
    ibp_context_set_open(&ibp_outside, IBP_LOWEST_TAG_OF_USERS);
    for (unsigned operation = 0; operation <= IBP_OPERATIONS; operation++) {
        ibp_calls[operation].operation = ibp_calls[operation].number = (uint16_t)operation;
        ibp_call_begin(&ibp_calls[operation]);
    }
    while ((call = ibp_call_next(call))) ibp_call_begin(call);
    ibp_between = world ? &ibp_outside : &ibp_calls[IBP_OPERATION_NONE].context;
    ibp_set_here(ibp_between);
    ibp_repeats_choose();
}

void ibp_contexts_enter_region(uint32_t region)
{
    ibp_origins_enter(region);
    ibp_recents_forget();
    ibp_ledger_forget_all();
    ibp_times_enter_region();
}
