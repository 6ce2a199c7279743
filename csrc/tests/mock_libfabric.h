/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A mock endpoint of libfabric, without a provider. Every call of the endpoint does nothing and returns mock_result.
 */
#ifndef IBPROF_TESTS_MOCK_LIBFABRIC_H
#define IBPROF_TESTS_MOCK_LIBFABRIC_H

#include "mpich_fixture.h"
#include "sources/mpich/libfabric_abi.h"

/* The result of all calls; for example, -EAGAIN makes calls fail. */
extern ssize_t mock_result;

/* Results of MPI_Get_library_version of three MPIs. */
#define MPICH_4_3 "MPICH Version:      4.3.2"
#define MPICH_5 "MPICH Version:      5.0.2"
#define INTEL "Intel(R) MPI Library 2021.18 for Linux* OS"

/* Return the endpoint of a process, with ibprof's hooks installed. `mpi` is the MPI's version text. Index N of the
 * endpoint's address vector is the address N. */
struct ibp_fi_endpoint *mock_endpoint(const char *mpi);

/* Return the domain of the mock endpoint, with ibprof's hooks installed. */
struct ibp_fi_domain *mock_domain(void);

/* Return the counted bytes of an operation: user data sent, control messages, user data fetched. */
#define SENT(operation) counted_bytes(IBP_OPERATION_##operation, IBP_KIND_USER, IBP_DIRECTION_SENT)
#define CONTROL(operation) counted_bytes(IBP_OPERATION_##operation, IBP_KIND_CONTROL, IBP_DIRECTION_SENT)
#define FETCHED(operation) counted_bytes(IBP_OPERATION_##operation, IBP_KIND_USER, IBP_DIRECTION_FETCHED)

#endif
