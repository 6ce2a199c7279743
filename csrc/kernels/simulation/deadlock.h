/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Packets that wait for each other and never move again, whether or not others go on.
 */
#ifndef IBP_SIMULATION_DEADLOCK_H
#define IBP_SIMULATION_DEADLOCK_H

#include "simulation/state.h"

/* Return whether some packets wait for each other so that they never move again. Takes time by queues. */
bool ibp_sim_is_stuck(struct ibp_sim *sim);

#endif
