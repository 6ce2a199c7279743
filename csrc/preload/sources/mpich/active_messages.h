/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Active messages of MPICH over libfabric: they carry all operations that MPICH does not leave to the provider. With
 * MPIR_CVAR_CH4_OFI_ENABLE_TAGGED=0 they also carry the program's messages, with the program's tag and size in the
 * header. An active message carries the data or announces them. Announced data follow in other active messages, or the
 * receiver reads them.
 */
#ifndef IBPROF_SOURCES_MPICH_ACTIVE_MESSAGES_H
#define IBPROF_SOURCES_MPICH_ACTIVE_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

/* Count an active message. `buffer` is NULL where the message is not in one piece. */
void ibp_fi_count_active(const void *buffer, size_t bytes, uint32_t peer);

#endif
