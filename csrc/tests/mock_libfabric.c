/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "mock_libfabric.h"
#include "libmpi/library.h"
#include "sources/mpich/libfabric_layout.h"
#include "sources/mpich/libfabric_memory.h"
#include "sources/mpich/libfabric_peers.h"
#include "sources/mpich/libfabric_sends.h"

#include <stdio.h>
#include <string.h>

ssize_t mock_result;

static ssize_t answer(void)
{
    return mock_result;
}

static int look_up(struct ibp_fi_av *av, uint64_t index, void *address, size_t *bytes)
{
    (void)av;
    memcpy(address, &index, sizeof index);
    *bytes = sizeof index;
    return 0;
}

/* Set all elements of a table of functions to the same function. */
static void fill(void *table, size_t bytes)
{
    ssize_t (*const function)(void) = answer;

    memcpy(table, &bytes, sizeof bytes);
    for (size_t at = sizeof bytes; at < bytes; at += sizeof function)
        memcpy((char *)table + at, &function, sizeof function);
}

struct ibp_fi_domain *mock_domain(void)
{
    static struct ibp_fi_registration_table registrations;
    static struct ibp_fi_object_table object;
    static struct ibp_fi_domain domain;

    if (!domain.registrations) {
        fill(&registrations, sizeof registrations);
        fill(&object, sizeof object);
        domain.registrations = &registrations;
        domain.object.table = &object;
        ibp_fi_hook_domain(&domain);
    }
    return &domain;
}

struct ibp_fi_endpoint *mock_endpoint(const char *mpi)
{
    static struct ibp_fi_message_table messages;
    static struct ibp_fi_memory_table memory;
    static struct ibp_fi_tagged_table tagged;
    static struct ibp_fi_atomic_table atomics;
    static struct ibp_fi_av_table av_table = {.bytes = sizeof av_table, .lookup = look_up};
    static struct ibp_fi_av av = {.table = &av_table};
    static struct ibp_fi_endpoint endpoint = {
        .messages = &messages, .memory = &memory, .tagged = &tagged, .atomics = &atomics};

    snprintf(ibp_mpi.version, sizeof ibp_mpi.version, "%s", mpi);
    ibp_fi_find_layout();
    fill(&messages, sizeof messages);
    fill(&memory, sizeof memory);
    fill(&tagged, sizeof tagged);
    fill(&atomics, sizeof atomics);
    ibp_fi_add_addresses(&av, mock_domain());
    ibp_fi_hook_sends(&endpoint, ibp_fi_add_endpoint(&endpoint, mock_domain()));
    return &endpoint;
}
