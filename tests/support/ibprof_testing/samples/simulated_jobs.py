# SPDX-License-Identifier: Apache-2.0
"""Two jobs for simulations: MPI messages of random pairs, and I/O requests."""

from __future__ import annotations

from ibprof_converter.simulation.workload.roles import IO, MPI, Role, Workload

KIB, MIB = 1 << 10, 1 << 20
US, MS = 1e3, 1e6


def mpi(size: int = 4 * KIB, interval: float = 500 * US, share: float = 0.5) -> Workload:
    """An MPI job of random pairs."""
    return Workload(MPI, Role.PAIRS, size, interval_ns=interval, share=share)


def io(size: int = 4 * MIB, interval: float = 0.0, share: float = 0.5, window: float = 0.0, limit: int = 0) -> Workload:
    """An I/O job; without an interval it is a checkpoint."""
    return Workload(IO, Role.IO, size, interval_ns=interval, window_ns=window, share=share, limit=limit)
