/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Record the settings that choose transports and adapters.
 */
#ifndef IBPROF_RECORDING_ADAPTER_CHOICE_H
#define IBPROF_RECORDING_ADAPTER_CHOICE_H

/* Record the cores on which this process may run, the identifier of the machine's boot, and the environment variables
 * that choose transports. If this host has adapters, also record the variables that name adapters. */
void ibp_adapter_choice_record(void);

#endif
