# SPDX-License-Identifier: Apache-2.0
"""Call collectives of Open MPI, as a separate program: `python collective_calls.py [PATH OF AN MPI LIBRARY]`.

Without a path, mpi4py loads and initialises the MPI library. A preloaded libibprof.so intercepts the calls.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

COUNTS = (256, 65536)
"""Numbers of integers in a message: an MPI library selects a collective's algorithm by the message size."""


def call_collectives(library: str) -> None:
    """Call each collective once for each count, on MPI_COMM_WORLD.

    Args:
        library: path of the loaded MPI library, which exports the handles (such as `ompi_mpi_comm_world`).
    """
    handles, mpi = ctypes.CDLL(library), ctypes.CDLL(None)

    def handle(name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(handles, name)))

    world, integer, total = (handle(f"ompi_mpi_{name}") for name in ("comm_world", "int", "op_sum"))
    for count in COUNTS:
        one, other = (ctypes.create_string_buffer(8 * count) for _ in range(2))
        part, half = (count, integer), (count // 2, integer)
        mpi.MPI_Bcast(one, *part, 0, world)
        mpi.MPI_Reduce(one, other, *part, total, 0, world)
        mpi.MPI_Allreduce(one, other, *part, total, world)
        mpi.MPI_Gather(one, *part, other, *part, 0, world)
        mpi.MPI_Scatter(other, *part, one, *part, 0, world)
        mpi.MPI_Allgather(one, *part, other, *part, world)
        mpi.MPI_Alltoall(one, *half, other, *half, world)
        mpi.MPI_Reduce_scatter_block(one, other, *half, total, world)
        mpi.MPI_Scan(one, other, *part, total, world)


def list_mapped_files() -> Iterator[str]:
    """Yield the files that are mapped into this process."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(None, 5)
        if len(fields) > 5:
            yield fields[5]


def main() -> None:
    """Initialise MPI, call the collectives, and finalise MPI."""
    if len(sys.argv) > 1:
        ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
        ctypes.CDLL(None).MPI_Init(None, None)
    else:
        from mpi4py import MPI  # noqa: F401, PLC0415  (it initialises the MPI)
    call_collectives(next(path for path in list_mapped_files() if Path(path).name.startswith("libmpi.so")))
    if len(sys.argv) > 1:
        ctypes.CDLL(None).MPI_Finalize()


if __name__ == "__main__":
    main()
