/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The functions of ibprof.h. In a process without a recording, these functions do nothing.
 */
#include "platform/system.h"
#include "calls/lifecycle.h"
#include "counting/activity.h"
#include "counting/regions.h"

#define IBPROF_IMPLEMENTATION
#include "ibprof.h"
#include "ibprof_recording.h"

#include <stdio.h>
#include <string.h>

IBP_EXPORT void ibprof_region(const char *name)
{
    if (ibp_may_change_regions() && name) ibp_region_close(name);
}

IBP_EXPORT void ibprof_region_at(const char *file, int line)
{
    const char *slash = strrchr(file, '/');
    char name[IBP_REGION_NAME_BYTES];

    snprintf(name, sizeof name, "%s:%d", slash ? slash + 1 : file, line);
    ibprof_region(name);
}

IBP_EXPORT void ibprof_region_begin(const char *name)
{
    if (ibp_may_change_regions() && name) ibp_region_begin(name);
}

IBP_EXPORT void ibprof_region_end(void)
{
    if (ibp_may_change_regions()) ibp_region_end();
}

IBP_EXPORT void ibprof_on(void)
{
    if (ibp_may_change_regions()) ibp_set_counting(true);
}

IBP_EXPORT void ibprof_off(void)
{
    if (ibp_may_change_regions()) ibp_set_counting(false);
}
