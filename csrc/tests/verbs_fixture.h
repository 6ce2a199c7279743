/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What tests of the verbs source have in common: two rails of the made-up provider, posting to queue pairs of theirs, and what
 * of that was recorded. Calls go through the real headers' inline functions, as a program's do.
 */
#ifndef IBPROF_VERBS_FIXTURE_H
#define IBPROF_VERBS_FIXTURE_H

#include "mock_verbs.h"
#include "recording_reader.h"

#define LID_OF_RAIL0 11
#define ANY_REGION (-1)

extern struct ibv_context *rail0, *rail1;
extern struct ibv_pd domain0, domain1;

/* Opens two devices, posts once and opens what is recorded from then on. */
void verbs_begin(void);

/* Checks that nothing was lost, and ends. Returns the program's status. */
int verbs_end(void);

/* Adds up what was recorded with a remote LID (0: with every), of one kind, in a region as a reader tells them apart. */
struct amount recorded(uint32_t remote_lid, int opcode, int region);

void check_amount(int line, struct amount found, uint64_t bytes, uint64_t messages);
#define CHECK_AMOUNT(found, bytes, messages) check_amount(__LINE__, found, bytes, messages)

/* All that the provider accepted was recorded, and nothing else. */
void check_all(int line);
#define CHECK_ALL() check_all(__LINE__)

struct ibv_qp *make_qp(struct ibv_pd *domain, enum ibv_qp_type type);
struct ibv_qp *make_extended_qp(enum ibv_qp_type type);
int connect_qp(struct ibv_qp *qp, uint16_t lid);
int post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t bytes);

#endif
