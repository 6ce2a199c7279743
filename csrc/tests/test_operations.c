/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "check.h"
#include "recording/operations.h"

#include <string.h>

static char unknown[256];

static void empty_means_all(void)
{
    CHECK(ibp_operations_select("", unknown, sizeof unknown) == 0);
    for (unsigned operation = IBP_OPERATION_UNATTRIBUTED; operation < IBP_OPERATIONS; operation++)
        CHECK(ibp_operation_wanted[operation]);
    CHECK(!ibp_operation_wanted[IBP_OPERATION_NONE] && !ibp_operation_wanted[IBP_OPERATION_UNWANTED]);
    CHECK(ibp_operations_select(" , ", unknown, sizeof unknown) == 0 && ibp_operation_wanted[IBP_OPERATION_Put]);
}

static void names_are_taken_in_any_form(void)
{
    CHECK(ibp_operations_select("alltoall, MPI_Bcast", unknown, sizeof unknown) == 0);
    CHECK(ibp_operation_wanted[IBP_OPERATION_Alltoall] && ibp_operation_wanted[IBP_OPERATION_Bcast]);
    CHECK(!ibp_operation_wanted[IBP_OPERATION_Ibcast] && !ibp_operation_wanted[IBP_OPERATION_Send]);
}

static void unknown_names_are_reported_and_the_others_kept(void)
{
    char longest[600];

    CHECK(ibp_operations_select("BCAST,ALLTOAL,none", unknown, sizeof unknown) == 2);
    CHECK(!strcmp(unknown, "ALLTOAL, none"));
    CHECK(ibp_operation_wanted[IBP_OPERATION_Bcast] && !ibp_operation_wanted[IBP_OPERATION_NONE]);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    CHECK(ibp_operations_select(longest, unknown, sizeof unknown) == 1);
    CHECK(strlen(unknown) < sizeof unknown);
}

static void a_list_of_unknown_names_alone_means_all(void)
{
    CHECK(ibp_operations_select("NOPE", unknown, sizeof unknown) == 1);
    CHECK(!strcmp(unknown, "NOPE") && !ibp_operations_filtered && ibp_operation_wanted[IBP_OPERATION_Bcast]);
    CHECK(ibp_operations_select("NOPE,BCAST", unknown, sizeof unknown) == 1);
    CHECK(ibp_operations_filtered && !ibp_operation_wanted[IBP_OPERATION_Send]);
    CHECK(ibp_operations_select(",", unknown, sizeof unknown) == 0 && !ibp_operations_filtered);
}

static void names_are_upper_case_and_all_different(void)
{
    char list[8192];

    CHECK(!strcmp(ibp_operation_name(IBP_OPERATION_Reduce_scatter_block), "REDUCE_SCATTER_BLOCK"));
    ibp_operations_list(list, sizeof list);
    CHECK(strlen(list) < 3584); /* the message that lists operations has space for it */
    for (unsigned a = 0; a < IBP_OPERATIONS; a++)
        for (unsigned b = a + 1; b < IBP_OPERATIONS; b++) CHECK(strcmp(ibp_operation_name(a), ibp_operation_name(b)));
}

int main(void)
{
    empty_means_all();
    names_are_taken_in_any_form();
    unknown_names_are_reported_and_the_others_kept();
    a_list_of_unknown_names_alone_means_all();
    names_are_upper_case_and_all_different();
    return 0;
}
