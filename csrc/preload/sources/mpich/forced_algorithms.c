/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/forced_algorithms.h"
#include "platform/text.h"
#include "recording/operations.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum answer { UNKNOWN, NO, YES };

/* Read an environment variable with each prefix that MPICH accepts. */
static enum answer ask_environment(unsigned operation, bool is_between_groups)
{
    static const char *const prefixes[] = {"MPIR_CVAR_", "MPICH_", "MPIR_PARAM_"};

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        char name[96];

        ibp_text_copy(name, sizeof name, prefixes[i]);
        ibp_text_append(name, sizeof name, ibp_operation_call(operation));
        ibp_text_append(name, sizeof name, is_between_groups ? "_INTER_ALGORITHM" : "_INTRA_ALGORITHM");
        for (char *letter = name; *letter; letter++) *letter = (char)toupper((unsigned char)*letter);
        if (!strcmp(ibp_environment(name), "nb")) return YES;
    }
    return NO;
}

bool ibp_mpich_is_made_of_nonblocking(unsigned operation, bool is_between_groups)
{
    static uint8_t answers[IBP_OPERATIONS][2];
    uint8_t *const answer = &answers[operation][is_between_groups];

    if (operation >= IBP_OPERATIONS) return false;
    if (*answer == UNKNOWN) *answer = (uint8_t)ask_environment(operation, is_between_groups);
    return *answer == YES;
}
