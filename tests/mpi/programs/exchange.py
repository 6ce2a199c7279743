# SPDX-License-Identifier: Apache-2.0
"""The traffic of exchange.c, by mpi4py: a broadcast, an all-to-all, an all-reduce and a ring of messages."""

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
block = 100
given = np.zeros(block * world.size)
got = np.zeros(block * world.size)
again = world.Dup()
again.Bcast(given[:block], root=0)
again.Alltoall(given, got)
world.Allreduce(given[:1], got[:1])
request = world.Irecv(got[:block], source=(world.rank - 1) % world.size)
world.Send(given[:block], dest=(world.rank + 1) % world.size)
request.Wait()
