/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A provider of verbs that carries nothing and counts everything: what it accepted is what must be recorded. Built as
 * libibverbs.so.1 with that library's real headers and versions of symbols.
 */
#ifndef IBPROF_MADE_UP_VERBS_H
#define IBPROF_MADE_UP_VERBS_H

#include <infiniband/verbs.h>

struct made_up_device {
    struct ibv_device device;
    struct verbs_context context;
};

/* A device of a name, to be opened. */
struct ibv_device *made_up_device(const char *name);

/* From now on each post is refused at its n-th request (from 1); 0: all are accepted. A silent refusal names no request. */
void made_up_refuse(int nth, int silently);

/* From now on modifying, and destroying, fails. */
void made_up_fail(int fails);

/* Bytes and messages that were accepted, over all queue pairs, by the kind of request: sent, written, read, atomic. */
void made_up_accepted(uint64_t bytes[4], uint64_t messages[4]);

#endif
