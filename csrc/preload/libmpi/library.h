/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The MPI library of this process. ibprof finds the library at run time, without linking and without mpi.h. Handles are
 * pointers in the ABIs of Open MPI and of MPI 5, and integers in MPICH's ABI.
 */
#ifndef IBPROF_LIBMPI_LIBRARY_H
#define IBPROF_LIBMPI_LIBRARY_H

#include "libmpi/implementation.h"
#include "platform/system.h"

#include <stdbool.h>
#include <stdint.h>

typedef intptr_t ibp_handle;

struct ibp_mpi {
    /* If the ABI is unknown (IBP_ABI_NONE), ibprof passes no handle to the library. */
    enum ibp_abi abi;
    struct ibp_implementation library;
    /* True if the program calls `library` through another library, which translates handles. Handles in arguments are
     * then ignored. */
    bool is_behind_layer;
    ibp_handle world;
    ibp_handle self;
    /* In Open MPI: MPI_REQUEST_NULL, and the shared request that nonblocking calls return if the operation is complete
     * at once. */
    void *null_request, *empty_request;
    /* Rank and size in MPI_COMM_WORLD; for a program that begins with a session, in the process set mpi://WORLD. */
    int rank, size;
    /* The first session of a program that begins with a session; otherwise 0. */
    ibp_handle session;
    /* The group of the process set mpi://WORLD. */
    ibp_handle world_group;
    /* True if ibprof created `self`, because a program that begins with a session has no MPI_COMM_SELF. */
    bool has_own_self;
    int thread_level;
    char version[256];
    /* Writable data of the program. After copy relocations, the predefined datatypes are in these data. */
    struct ibp_span program_data;

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

/* Find the library and its ABI, before MPI is initialised. Return 0, or a negative errno if there is no library or its
 * ABI is unknown. */
int ibp_mpi_find(void);

bool ibp_is_mpi_library(const char *path);

/* Find the library, and fill ibp_mpi with the data of this process. MPI must be initialised. Return 0, or -1 with the
 * reason in `why`. */
int ibp_mpi_open(char *why, size_t why_bytes);

/* Before the last session ends: free the objects that ibp_mpi_open created. */
void ibp_mpi_close(void);

/* Return the MPI function that the program would call without ibprof, from another tool or the MPI library; NULL if
 * both lack the function. */
void *ibp_mpi_next(const char *name);

/* Return whether another tool wraps an MPI function, so that ibp_mpi_next returns the tool's function. */
bool ibp_mpi_is_wrapped(const char *name);

/* Return the address of a symbol of the MPI library. If the program calls this library directly and has a copy of the
 * symbol, return the address of the copy. */
void *ibp_mpi_symbol(const char *name);

/* Return a PMPI function of the library, not ibprof's wrapper with this name; NULL if the library lacks the
 * function. */
void *ibp_mpi_own_function(const char *name);

/* Return the value of MPI_TAG_UB; 0 if it is unknown, as in Open MPI's ABI. */
unsigned ibp_mpi_largest_tag(void);

/* Find a function in the libraries that the MPI library is linked to. Return NULL if no library defines the
 * function. */
void *ibp_mpi_dependency(const char *name);

#endif
