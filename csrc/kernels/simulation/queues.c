/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/queues.h"

#include <errno.h>
#include <stdlib.h>

bool ibp_sim_grow_freed(struct ibp_sim *sim)
{
    const uint64_t capacity = 2 * sim->freed_capacity + 64;
    uint32_t *larger = realloc(sim->freed, capacity * sizeof *larger);

    if (!larger) {
        sim->failed = -ENOMEM;
        return false;
    }
    sim->freed = larger;
    sim->freed_capacity = capacity;
    return true;
}
