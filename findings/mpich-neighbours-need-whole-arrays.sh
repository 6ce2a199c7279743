#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: MPI_Dist_graph_neighbors with maxoutdegree 0 returns only the sources. The standard says: if maxindegree or maxoutdegree
#   is smaller than the number of neighbours, only the first part of the list is returned (MPI 4.1, section 8.5.5).
# Seen: MPICH reports an invalid argument. With the default error handler, this ends the program.
# Version: MPICH 5.0.2.
# Matters: a tool that requests only the sources of a communicator ends the user's program. Pass arrays for all neighbours.
. "$(dirname "$0")/lib.sh"

pip_install mpich==5.0.2
library=$(python -c 'import sys; print(sys.prefix)')/lib/libmpi.so.12
expect 'MPI_Dist_graph_neighbors with room for one destination, and for none' "$(
    python - "$library" <<'END'
import ctypes
import sys

mpi = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
WORLD, INFO_NULL, ERRORS_RETURN = 0x44000000, 0x1C000000, 0x54000001
unweighted = ctypes.c_void_p.in_dll(mpi, "MPI_UNWEIGHTED")
one, graph, kind = (ctypes.c_int * 1)(0), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Dist_graph_create_adjacent(WORLD, 1, one, unweighted, 1, one, unweighted, INFO_NULL, 0, ctypes.byref(graph))
mpi.MPI_Comm_set_errhandler(graph, ERRORS_RETURN)
for most in (1, 0):
    error = mpi.MPI_Dist_graph_neighbors(graph, 1, one, one, most, one, one)
    mpi.MPI_Error_class(error, ctypes.byref(kind))
    print({0: "MPI_SUCCESS", 12: "MPI_ERR_ARG"}.get(kind.value, kind.value), end=" ")
mpi.MPI_Finalize()
END
)" 'MPI_SUCCESS MPI_ERR_ARG '
