/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Open MPI's table of point-to-point functions, `mca_pml`: an exported struct of function pointers. Collectives use the
 * table too. The layouts of versions 4 and 5 differ by one entry. The layout is found from the names of functions in
 * the table.
 */
#ifndef IBPROF_SOURCES_OPENMPI_TABLE_H
#define IBPROF_SOURCES_OPENMPI_TABLE_H

#include "libmpi/library.h"
#include "platform/system.h"

#include <stdbool.h>
#include <stddef.h>

/* MPI_Status of Open MPI 4 and 5. */
struct ibp_openmpi_status {
    int source;
    int tag;
    int error;
    int cancelled;
    size_t bytes;
};

/* Types of the table's functions. Arguments: buffer, count, datatype, peer, tag, send mode (sends only), communicator,
 * ... */
typedef int ibp_openmpi_send_function(const void *, size_t, ibp_handle, int, int, int, ibp_handle);
typedef int ibp_openmpi_isend_function(const void *, size_t, ibp_handle, int, int, int, ibp_handle, void **);
typedef int ibp_openmpi_recv_function(void *, size_t, ibp_handle, int, int, ibp_handle, struct ibp_openmpi_status *);
typedef int ibp_openmpi_irecv_function(void *, size_t, ibp_handle, int, int, ibp_handle, void **);
typedef int ibp_openmpi_start_function(size_t, void **);
typedef int ibp_openmpi_comm_function(ibp_handle);
typedef int ibp_openmpi_mprobe_function(int, int, ibp_handle, void **, struct ibp_openmpi_status *);
typedef int ibp_openmpi_improbe_function(int, int, ibp_handle, int *, void **, struct ibp_openmpi_status *);
typedef int ibp_openmpi_mrecv_function(void *, size_t, ibp_handle, void **, struct ibp_openmpi_status *);
typedef int ibp_openmpi_imrecv_function(void *, size_t, ibp_handle, void **, void **);

/* The original functions of the table. The hooks call these functions. */
struct ibp_openmpi_functions {
    ibp_openmpi_send_function *send;
    ibp_openmpi_isend_function *isend, *isend_init;
    ibp_openmpi_recv_function *recv;
    ibp_openmpi_irecv_function *irecv, *irecv_init;
    ibp_openmpi_start_function *start;
    ibp_openmpi_comm_function *add_comm, *del_comm;
    ibp_openmpi_mprobe_function *mprobe;
    ibp_openmpi_improbe_function *improbe;
    ibp_openmpi_mrecv_function *mrecv;
    ibp_openmpi_imrecv_function *imrecv;
};
extern IBP_INTERNAL struct ibp_openmpi_functions ibp_openmpi_next;

/* A hook: a function that replaces a function of the table. */
struct ibp_openmpi_hook {
    const char *slot;
    void *function;
    /* The member of ibp_openmpi_next that stores the original function. */
    void *next;
};

/* Find the table and its layout. Return 0, or -1 with the reason in `why`. */
int ibp_openmpi_table_find(char *why, size_t why_bytes);

void ibp_openmpi_table_hook(const struct ibp_openmpi_hook *hooks, size_t count);

void ibp_openmpi_table_unhook(const struct ibp_openmpi_hook *hooks, size_t count);

/* Return whether the component `ob1` sends messages. The table must be hooked. */
bool ibp_openmpi_sends_by_ob1(void);

/* Return whether a blocking send waits in Open MPI's progress loop. With the component `cm`, a send may wait in a
 * library of the network instead. The table must be hooked. */
bool ibp_openmpi_sends_pass_progress(void);

#endif
