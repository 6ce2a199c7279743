/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/source.h"
#include "counting/activity.h"
#include "counting/counters.h"
#include "counting/process.h"
#include "libmpi/job_line.h"
#include "platform/text.h"
#include "recording/other_transports.h"

const struct ibp_source_operations *ibp_source;
bool ibp_source_unproved;
char ibp_source_why_not[1024];

void ibp_source_note_gaps(void)
{
    struct ibp_process *process = ibp_process_record();

    process->notes[0] = '\0';
    if (ibp_source && !*ibp_source_why_not) ibp_source->describe_gaps(process->notes, sizeof process->notes);
    if (*ibp_source_why_not) {
        ibp_text_append(process->notes, sizeof process->notes, "messages between ranks were not seen: ");
        ibp_text_append(process->notes, sizeof process->notes, ibp_source_why_not);
        ibp_text_append(process->notes, sizeof process->notes, "\n");
    }
    ibp_other_transports_describe(process->notes, sizeof process->notes);
}

void ibp_source_reject(const char *why)
{
    ibp_activity_end();
    ibp_counters_clear();
    ibp_source->detach();
    ibp_process_record()->source = IBP_SOURCE_NONE;
    ibp_text_copy(ibp_source_why_not, sizeof ibp_source_why_not, why);
    ibp_source_note_gaps();
    ibp_say_once_a_job("messages between ranks are not recorded", why);
}

/* -- no source ------------------------------------------------------------------------------------------------------ */

static int attach_none(char *why, size_t why_bytes)
{
    (void)why, (void)why_bytes;
    return 0;
}

static bool sees_host_none(void)
{
    return false;
}

static void describe_gaps_none(char *notes, size_t bytes)
{
    (void)notes, (void)bytes; /* another note reports why there is no source */
}

static void before_tag_none(void)
{
}

static void after_tag_none(int error)
{
    (void)error;
}

static void detach_none(void)
{
}

const struct ibp_source_operations ibp_no_source = {
    .source = IBP_SOURCE_NONE,
    .name = "none",
    .labels_sends = true, /* without a source, only the wrappers see sends */
    .attach = attach_none,
    .detach = detach_none,
    .sees_host = sees_host_none,
    .describe_gaps = describe_gaps_none,
    .before_tag = before_tag_none,
    .after_tag = after_tag_none,
};
