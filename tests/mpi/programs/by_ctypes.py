# SPDX-License-Identifier: Apache-2.0
"""Rank 0 sends 5,000 bytes to rank 1 and broadcasts 20,000, by functions of the MPI library in the first argument."""

from __future__ import annotations

import ctypes
import sys

BYTES, BROADCAST = 5000, 20000


def main(path: str) -> None:
    mpi = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    handle: type[ctypes.c_void_p | ctypes.c_int]
    ignored: ctypes.c_void_p | None
    if hasattr(mpi, "ompi_mpi_comm_world"):
        world, byte = (
            ctypes.addressof(ctypes.c_int.in_dll(mpi, f"ompi_mpi_{name}")) for name in ("comm_world", "byte")
        )
        handle, ignored = ctypes.c_void_p, None
    else:
        world, byte, handle, ignored = 0x44000000, 0x4C00010D, ctypes.c_int, ctypes.c_void_p(1)
    of_bytes, in_world = handle(byte), handle(world)
    mpi.MPI_Init(None, None)
    rank = ctypes.c_int()
    mpi.MPI_Comm_rank(in_world, ctypes.byref(rank))
    buffer = ctypes.create_string_buffer(BROADCAST)
    if rank.value == 0:
        mpi.MPI_Send(buffer, BYTES, of_bytes, 1, 7, in_world)
    elif rank.value == 1:
        mpi.MPI_Recv(buffer, BYTES, of_bytes, 0, 7, in_world, ignored)
    mpi.MPI_Bcast(buffer, BROADCAST, of_bytes, 0, in_world)
    mpi.MPI_Finalize()


if __name__ == "__main__":
    main(sys.argv[1])
