# SPDX-License-Identifier: Apache-2.0
"""Small simulations for tests: a job of MPI messages, a job of I/O requests, machines of a few hosts, latencies."""

from __future__ import annotations

from dataclasses import replace

from ibprof_lab.simulation.measure.message_latency import NOTHING, QUANTILES, QUICK, Latency
from ibprof_lab.simulation.study.cell import Setting
from ibprof_lab.simulation.workload.workloads import IO, MPI, Role, Workload

KIB, MIB = 1 << 10, 1 << 20
US, MS = 1e3, 1e6


def mpi(size: int = 4 * KIB, interval: float = 500 * US, share: float = 0.5) -> Workload:
    """Return an MPI job: random pairs of hosts send messages."""
    return Workload(MPI, Role.PAIRS, size, interval_ns=interval, share=share)


def io(size: int = 4 * MIB, interval: float = 0.0, share: float = 0.5, window: float = 0.0, limit: int = 0) -> Workload:
    """Return an I/O job. With `interval` 0, the job writes a checkpoint."""
    return Workload(IO, Role.IO, size, interval_ns=interval, window_ns=window, share=share, limit=limit)


SMALL = Setting("xgft:2:8,4:1,8@100", servers=4, effort=QUICK)
"""4 leaves of 8 hosts, full bisection."""

MACHINE = ["--fabric", "xgft:2:8,9:1,8@100", "--servers", "8", "--workers", "1", "--quick"]
"""Options for 9 leaves of 8 hosts. One leaf has servers. Jobs on whole leaves get 4 leaves: 4 clients per server."""


def latency_of(mean: float, settled: bool = True) -> Latency:
    """Return the statistics of messages that all have the same latency `mean` (ns)."""
    return replace(NOTHING, messages=9, mean=mean, quantiles=(mean,) * len(QUANTILES), is_settled=settled, note="said")
