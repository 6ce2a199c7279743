# SPDX-License-Identifier: Apache-2.0
"""Run the program of exchange.c with mpi4py: transpose, parameters and halo, in three named regions.

ibprof run -- mpirun -n 16 python exchange.py
"""

from mpi4py import MPI

import ibprof

STEPS = 4
BLOCK_BYTES = 64 * 1024
PARAMETER_BYTES = 1024 * 1024
EDGE_BYTES = 256 * 1024

world = MPI.COMM_WORLD
extents = MPI.Compute_dims(world.size, 2)
grid = world.Create_cart(extents, periods=[True, True])

for _ in range(STEPS):
    with ibprof.region("transpose"):
        world.Alltoall(bytearray(world.size * BLOCK_BYTES), bytearray(world.size * BLOCK_BYTES))
    with ibprof.region("parameters"):
        world.Bcast(bytearray(PARAMETER_BYTES), root=0)
    with ibprof.region("halo"):
        for dimension in range(2):
            before, after = grid.Shift(dimension, 1)
            grid.Sendrecv(bytearray(EDGE_BYTES), dest=after, recvbuf=bytearray(EDGE_BYTES), source=before)
            grid.Sendrecv(bytearray(EDGE_BYTES), dest=before, recvbuf=bytearray(EDGE_BYTES), source=after)

if world.rank == 0:
    print(f"exchange: {STEPS} steps on {extents[0]} x {extents[1]} ranks")
