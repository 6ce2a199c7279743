/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "calls/large_calls.h"
#include "calls/wrapper.h"

#include <string.h>

static const struct ibp_replacements *const wrappers[] = {&ibp_large_trampolines, &ibp_large_one_sided};

#define COUNT(array) (sizeof(array) / sizeof *(array))

void ibp_wrap_large_calls(void)
{
    for (size_t i = 0; i < COUNT(wrappers); i++) ibp_got_redirect_users(wrappers[i]->items, wrappers[i]->count);
}

void *ibp_large_call(const char *name)
{
    for (size_t i = 0; i < COUNT(wrappers); i++)
        for (size_t j = 0; j < wrappers[i]->count; j++)
            if (!strcmp(wrappers[i]->items[j].name, name)) return wrappers[i]->items[j].function;
    return NULL;
}
