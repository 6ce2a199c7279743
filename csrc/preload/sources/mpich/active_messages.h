/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Active messages of MPICH over libfabric. MPICH uses them for operations that libfabric's provider does not support.
 * With MPIR_CVAR_CH4_OFI_ENABLE_TAGGED=0, they also carry the program's messages, with tag and size in a header. An
 * active message contains the data or announces the data. Announced data follow in further active messages, or the
 * receiver reads the data from the sender's memory.
 */
#ifndef IBPROF_SOURCES_MPICH_ACTIVE_MESSAGES_H
#define IBPROF_SOURCES_MPICH_ACTIVE_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

/* Count an active message. `buffer` is NULL if the message is not contiguous. */
void ibp_fi_count_active(const void *buffer, size_t bytes, uint32_t peer);

#endif
