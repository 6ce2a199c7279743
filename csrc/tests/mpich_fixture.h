/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Shared by tests of the sources in MPICH. Without an MPI library, a test records calls and messages, and reads the
 * counted bytes. A process has one recording, so each test runs in a separate process.
 */
#ifndef IBPROF_TESTS_MPICH_FIXTURE_H
#define IBPROF_TESTS_MPICH_FIXTURE_H

#include "check.h"
#include "counting/current_call.h"
#include "recording/operations.h"
#include "recording_reader.h"

#include "ibprof_recording.h"

enum { WORLD = 0x44000000, OTHER = 0x84000001, POINT_TO_POINT = 0x10, COLLECTIVE = 0x11, OF_OTHER = 0x21 };

struct ibp_source_operations;

/* The peer with the address SOME_ADDRESS. */
#define SOME_ADDRESS UINT64_C(22)
extern uint32_t some_peer;

/* Run a test in a separate process, which records messages with `source`. */
void run_recorded(void (*test)(void), const struct ibp_source_operations *source);

void enter_call(unsigned operation, enum ibp_call_kind kind, ibp_handle communicator);

/* Return the counted bytes of an operation, to all peers. */
uint64_t counted_bytes(unsigned operation, enum ibp_kind kind, enum ibp_direction direction);
uint64_t counted_messages(unsigned operation, enum ibp_kind kind, enum ibp_direction direction);

#endif
