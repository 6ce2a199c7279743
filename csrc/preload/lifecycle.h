/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * From MPI_Init to MPI_Finalize: when this process is recorded, and when it counts.
 */
#ifndef IBPROF_LIFECYCLE_H
#define IBPROF_LIFECYCLE_H

#include "system.h"
#include "wiped.h"

#include <stdbool.h>

/* Whether MPI calls of this process are recorded. Lies in a page that a forked child sees as zeros. */
extern IBP_INTERNAL const bool *ibp_active;

/* Whether it counts what starts now: false while switched off. */
extern IBP_INTERNAL bool ibp_counting;

static inline bool ibp_is_active(void)
{
    return *ibp_active;
}

/* Whether this process has a recording: it is a rank, or it posted work requests. */
static inline bool ibp_is_recorded(void)
{
    return __atomic_load_n(&ibp_wiped->recorded, __ATOMIC_RELAXED);
}

/* Whether this thread may change regions: below MPI_THREAD_SERIALIZED only the one that may call MPI, since nothing is locked
 * and another thread's change could meet its messages. */
bool ibp_may_change_regions(void);

/* Opens the recording of this process, once, at its first work request or when MPI is ready. Returns whether it has one. */
bool ibp_record_process(void);

void ibp_set_counting(bool on);

/* The source was wrong: what it counted is taken back, and it sees no more. */
void ibp_take_source_back(const char *why);

/* There was no space for a counter: says so, once a job. */
void ibp_note_full(void);

/* Whether the calls that send have to say which they are: the source cannot tell. */
extern IBP_INTERNAL bool ibp_labels_sends;

/* Called before MPI is initialised, when it is ready, and before it ends. What begins when recording has ended is not recorded,
 * which the recording then says. */
void ibp_prepare(void);
void ibp_start(void);
void ibp_stop(void);

/* Whether MPI_Init was called, and MPI_Finalize not yet. */
bool ibp_has_world(void);

/* Whether sessions are open (sessions.c). */
bool ibp_has_sessions(void);

/* Whether ibp_start was called. */
bool ibp_is_started(void);

/* Called when MPI has ended. */
void ibp_hand_over(void);

#endif
