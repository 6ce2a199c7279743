/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Shared by tests of the verbs source: two rails of the mock provider, posts to their queue pairs, and the recorded
 * amounts. Calls go through the real headers' inline functions, like calls of a program.
 */
#ifndef IBPROF_VERBS_FIXTURE_H
#define IBPROF_VERBS_FIXTURE_H

#include "mock_verbs.h"
#include "recording_reader.h"

#define LID_OF_RAIL0 11
#define ANY_REGION (-1)

extern struct ibv_context *rail0, *rail1;
extern struct ibv_pd domain0, domain1;

/* Open two devices, post once and map the recording. */
void verbs_begin(void);

/* Check that no bytes were lost, and end the recording. Return the program's exit status. */
int verbs_end(void);

/* Return the recorded bytes and messages of a remote LID (0: all), opcode and region, as a reader computes them. */
struct amount recorded(uint32_t remote_lid, int opcode, int region);

void check_amount(int line, struct amount found, uint64_t bytes, uint64_t messages);
#define CHECK_AMOUNT(found, bytes, messages) check_amount(__LINE__, found, bytes, messages)

/* Check that the recorded requests equal the accepted requests. */
void check_all(int line);
#define CHECK_ALL() check_all(__LINE__)

struct ibv_qp *make_qp(struct ibv_pd *domain, enum ibv_qp_type type);
struct ibv_qp *make_extended_qp(enum ibv_qp_type type);
int connect_qp(struct ibv_qp *qp, uint16_t lid);
int post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t bytes);

#endif
