/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Active messages: MPICH sends them if libfabric's provider does not support an operation. With
 * MPIR_CVAR_CH4_OFI_ENABLE_TAGGED=0, MPICH also sends the program's messages as active messages, with tag and size in a
 * header. An active message contains data or announces data. Announced data follow in further active messages, or the
 * receiver reads the data from the sender's memory.
 */
#ifndef IBPROF_SOURCES_MPICH_ACTIVE_MESSAGES_H
#define IBPROF_SOURCES_MPICH_ACTIVE_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

/* Count an active message. `buffer`: the message; NULL if it is not contiguous in memory. */
void ibp_fi_count_active(const void *buffer, size_t bytes, uint32_t peer);

#endif
