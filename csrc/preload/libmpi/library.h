/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The MPI library of this process, found at run time: no mpi.h, no link. Handles are pointers in Open MPI and in the standard
 * ABI and integers in MPICH's; all fit an ibp_handle.
 */
#ifndef IBPROF_LIBMPI_LIBRARY_H
#define IBPROF_LIBMPI_LIBRARY_H

#include "platform/system.h"

#include <stdbool.h>
#include <stdint.h>

typedef intptr_t ibp_handle;

enum ibp_abi { IBP_ABI_NONE, IBP_ABI_OPENMPI, IBP_ABI_MPICH, IBP_ABI_STANDARD };

struct ibp_mpi {
    enum ibp_abi abi;
    /* Of dlopen. */
    void *library;
    ibp_handle world;
    ibp_handle self;
    /* In MPI_COMM_WORLD, or where there is none the process set mpi://WORLD. */
    int rank, size;
    /* That the program began with; 0 when it called MPI_Init. */
    ibp_handle session;
    /* Of the process set, then. */
    ibp_handle world_group;
    /* And self is a communicator of ours. */
    bool has_own_self;
    int thread_level;
    char version[256];
    /* Writable data of the library, and of the program, where a copy relocation may put it: predefined datatypes lie there. */
    struct ibp_span {
        uintptr_t begin, end;
    } library_data, program_data;

    int (*comm_rank)(ibp_handle, int *);
    int (*comm_free)(ibp_handle *);
    int (*comm_size)(ibp_handle, int *);
    int (*comm_group)(ibp_handle, ibp_handle *);
    int (*comm_remote_group)(ibp_handle, ibp_handle *);
    int (*comm_test_inter)(ibp_handle, int *);
    int (*win_get_group)(ibp_handle, ibp_handle *);
    int (*group_size)(ibp_handle, int *);
    int (*group_translate_ranks)(ibp_handle, int, const int *, ibp_handle, int *);
    int (*group_free)(ibp_handle *);
    /* MPI_Type_size_x. */
    int (*type_size)(ibp_handle, int64_t *);
    int (*irecv)(void *, int, ibp_handle, int, int, ibp_handle, void *);
    int (*send)(const void *, int, ibp_handle, int, int, ibp_handle);
    int (*wait)(void *, void *);
    int (*ibarrier)(ibp_handle, void *);
};

extern IBP_INTERNAL struct ibp_mpi ibp_mpi;

/* Finds the library, before it is initialised, and which of its kind it is. Returns 0, or a negative errno. */
int ibp_mpi_find(void);

/* Whether a file is an MPI library, by its name. */
bool ibp_is_mpi_library(const char *path);

/* Finds the library and asks it about this process; MPI must be initialised. Returns 0, or a negative errno. */
int ibp_mpi_open(void);

/* Frees what that made, before the last session ends. */
void ibp_mpi_close(void);

/* The next definition of an MPI function behind ours: another tool's or the library's. NULL when there is none. */
void *ibp_mpi_next(const char *name);

/* A symbol of the MPI library, wherever the program sees it. */
void *ibp_mpi_symbol(const char *name);

/* MPI_TAG_UB, in the ABIs of MPICH and the standard; 0 where it cannot be told. */
unsigned ibp_mpi_largest_tag(void);

/* A function of a library that the MPI library is linked with. */
void *ibp_mpi_dependency(const char *name);

#endif
