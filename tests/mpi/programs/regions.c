/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Every way to mark code with ibprof.h. Each rank sends to the next rank; each place sends another number of bytes.
 *
 *     regions nested|many|off|odd
 */
#include "ibprof.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define REGIONS 500
#define VISITS 2000

static char from[1 << 16], into[1 << 16];
static int me, ranks;

static void send(int bytes)
{
    MPI_Sendrecv(from, bytes, MPI_BYTE, (me + 1) % ranks, 0, into, sizeof into, MPI_BYTE, (me + ranks - 1) % ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void nest(void)
{
    send(1);
    ibprof_region_begin("outer");
    send(10);
    for (int i = 0; i < 3; i++) {
        ibprof_region_begin("inner");
        send(100);
        ibprof_region_end();
    }
    send(1000);
    ibprof_region_end();
    send(10000);
    IBPROF_REGION(); /* closes the outer region: 10,001 bytes */
    send(2);
    ibprof_region("named");
    send(3);
}

static void visit_many(void)
{
    char name[32];

    for (int visit = 0; visit < VISITS; visit++) {
        for (int region = 0; region < REGIONS; region++) {
            snprintf(name, sizeof name, "region %d", region);
            ibprof_region_begin(name);
            if (visit % 1000 == 0) send(region);
            ibprof_region_end();
        }
    }
}

static void switch_off(void)
{
    send(1);
    ibprof_off();
    send(10);
    ibprof_on();
    send(100);
    MPI_Pcontrol(0);
    send(1000);
    MPI_Pcontrol(1);
    send(10000);
}

/* Wrong uses of ibprof.h. */
static void misuse(void)
{
    static char long_name[1000];

    memset(long_name, 'x', sizeof long_name - 1);
    ibprof_region_end();
    ibprof_region_begin(long_name);
    send(1);
    ibprof_region_end();
    ibprof_region_begin(NULL);
    ibprof_region_end();
    for (int depth = 0; depth < 1000; depth++) ibprof_region_begin("deep");
    send(10);
    for (int depth = 0; depth < 1000; depth++) ibprof_region_end();
    send(100);
    ibprof_off();
    ibprof_off();
    ibprof_on();
    ibprof_region_begin("left open");
    send(1000);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "nested";

    ibprof_region_begin("before MPI_Init");
    ibprof_region_end();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!strcmp(what, "nested"))
        nest();
    else if (!strcmp(what, "many"))
        visit_many();
    else if (!strcmp(what, "off"))
        switch_off();
    else
        misuse();
    MPI_Finalize();
    ibprof_region("after MPI_Finalize");
    if (!me) puts("done");
    return 0;
}
