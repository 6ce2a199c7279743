# SPDX-License-Identifier: Apache-2.0
"""Calls MPI from Python functions and through a C library. A comment names each line that the test checks."""

from __future__ import annotations

import ctypes
import sys
import threading

from mpi4py.MPI import BYTE, COMM_WORLD, Finalize

BUFFER = bytearray(100)


def exchange(count: int) -> None:
    if COMM_WORLD.rank == 0:
        COMM_WORLD.Send([BUFFER, count, BYTE], 1)  # @send
    else:
        COMM_WORLD.Recv([BUFFER, count, BYTE], 0)


def halo(count: int) -> None:
    exchange(count)  # @halo


def through_library(path: str) -> None:
    ctypes.CDLL(path).exchange(ctypes.create_string_buffer(100), 33)  # @library


halo(31)  # @first
halo(32)  # @second
if len(sys.argv) > 1:
    through_library(sys.argv[1])  # @third
thread = threading.Thread(target=halo, args=(34,))
thread.start()
thread.join()
Finalize()
