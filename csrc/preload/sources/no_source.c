/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/no_source.h"

static int attach(char *why, size_t why_bytes)
{
    (void)why, (void)why_bytes;
    return 0;
}

static bool sees_host(void)
{
    return false;
}

static void describe_gaps(char *notes, size_t bytes)
{
    (void)notes, (void)bytes; /* why there is no source is a note of its own */
}

static void before_tag(void)
{
}

static void after_tag(bool succeeded)
{
    (void)succeeded;
}

static void detach(void)
{
}

const struct ibp_source_operations ibp_no_source = {
    .source = IBP_SOURCE_NONE,
    .name = "none",
    .attach = attach,
    .detach = detach,
    .sees_host = sees_host,
    .describe_gaps = describe_gaps,
    .before_tag = before_tag,
    .after_tag = after_tag,
};
