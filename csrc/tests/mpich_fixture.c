/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "mpich_fixture.h"
#include "counting/addresses.h"
#include "counting/contexts.h"
#include "counting/process.h"
#include "libmpi/handles.h"
#include "recording/process_state.h"
#include "sources/source.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

uint32_t some_peer;

static int type_size(ibp_handle datatype, int64_t *size)
{
    *size = datatype == 0x4c00010d ? 1 : 8;
    return 0;
}

/* The tests have no MPI, so the members of communicators are unknown. */
static int comm_test_inter(ibp_handle communicator, int *between)
{
    (void)communicator, (void)between;
    return 1;
}

static void start(const struct ibp_source_operations *source)
{
    const char *folder = make_test_folder();
    const uint64_t address = SOME_ADDRESS;
    char output[300], unknown[64];

    snprintf(output, sizeof output, "%s/recording", folder);
    setenv("IBPROF_OUTPUT", output, 1);
    ibp_operations_select("", unknown, sizeof unknown);
    ibp_mpi.abi = IBP_ABI_MPICH;
    ibp_mpi.world = WORLD;
    ibp_mpi.type_size = type_size;
    ibp_mpi.comm_test_inter = comm_test_inter;
    CHECK(ibp_process_open());
    reader_open(output);
    ibp_addresses_record();
    some_peer = ibp_address_of_peer(&address, sizeof address);
    ibp_source = source;
    ibp_process_state->active = true;
    ibp_labels_sends = true;
    ibp_contexts_set(0);
}

void run_recorded(void (*test)(void), const struct ibp_source_operations *source)
{
    const pid_t child = fork();
    int status;

    CHECK(child >= 0);
    if (!child) {
        start(source);
        test();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

void enter_call(unsigned operation, enum ibp_call_kind kind, ibp_handle communicator)
{
    ibp_enter(&ibp_calls[operation], (struct ibp_current_call){.kind = (uint8_t)kind, .communicator = communicator});
}

static struct ibp_counter add_up(unsigned operation, enum ibp_kind kind, enum ibp_direction direction)
{
    struct ibp_counter sum = {0};

    for (int i = 0; i < reader_count(IBP_SEGMENT_COUNTERS); i++) {
        const struct ibp_counter *counter = reader_record(IBP_SEGMENT_COUNTERS, i);
        const struct ibp_origin *origin = reader_record(IBP_SEGMENT_ORIGINS, (int)counter->origin);

        if (origin->operation != operation || counter->kind != kind || counter->direction != direction) continue;
        sum.bytes += counter->bytes;
        sum.messages += counter->messages;
    }
    return sum;
}

uint64_t counted_bytes(unsigned operation, enum ibp_kind kind, enum ibp_direction direction)
{
    return add_up(operation, kind, direction).bytes;
}

uint64_t counted_messages(unsigned operation, enum ibp_kind kind, enum ibp_direction direction)
{
    return add_up(operation, kind, direction).messages;
}
