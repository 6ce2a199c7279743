/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Destructors that run after main call MPI_Finalize, and then call MPI and ibprof.
 */
#include "ibprof.h"

#include <cstdio>
#include <mpi.h>
#include <stdexcept>

struct Asking {
    const char *when;
    ~Asking()
    {
        int began = 0, ended = 0, version = 0, minor = 0;

        MPI_Initialized(&began);
        MPI_Finalized(&ended);
        MPI_Get_version(&version, &minor);
        if (!ended) {
            MPI_Pcontrol(0);
            MPI_Pcontrol(1);
        }
        ibprof_region_begin("afterwards");
        ibprof_region("afterwards");
        ibprof_region_end();
        std::printf("%s: %d %d\n", when, began, ended);
        std::fflush(stdout);
    }
};

struct Ending {
    ~Ending()
    {
        int sum = 0, one = 1;

        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Finalize();
    }
};

static Asking afterwards = {"afterwards"};
static Ending ending;
static Asking before = {"before"};

static void fail(int depth)
{
    ibprof_region_begin("failing");
    if (!depth) throw std::runtime_error("failed");
    fail(depth - 1);
    ibprof_region_end();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 100; i++) {
        try {
            fail(i);
        } catch (const std::exception &) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    return 4;
}
