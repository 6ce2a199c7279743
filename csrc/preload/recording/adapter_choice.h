/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Settings that choose a process's transports, and adapters of its host.
 */
#ifndef IBPROF_RECORDING_ADAPTER_CHOICE_H
#define IBPROF_RECORDING_ADAPTER_CHOICE_H

/* Record the cores that this process may run on, the number of its machine's start, and the variables of its environment that choose transports and, where
 * this host has adapters, name adapters. */
void ibp_adapter_choice_record(void);

#endif
