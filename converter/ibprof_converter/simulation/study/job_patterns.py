# SPDX-License-Identifier: Apache-2.0
"""The machine, the jobs and the traffic patterns of the thesis's chapters 5 and 6.

Source: section 5.3 and table 5.1 of the thesis on whose method ibprof stands (docs/thesis/interference.md names it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ibprof_converter.simulation.measure.message_latency import Effort
from ibprof_converter.simulation.study.cell import Cell, Setting
from ibprof_converter.simulation.workload.roles import Role, Workload

KIB, MIB = 1 << 10, 1 << 20
US, MS = 1e3, 1e6
MPI, IO = "mpi", "io"

TABLE_5_1: Mapping[int, tuple[float, ...]] = {
    4 * KIB: (500 * US, 100 * US, 50 * US, 10 * US, 5 * US, 1 * US),
    512 * KIB: (5 * MS, 1 * MS, 500 * US, 100 * US, 50 * US, 10 * US),
    4 * MIB: (50 * MS, 10 * MS, 5 * MS, 1 * MS, 500 * US, 100 * US),
}
"""Bytes -> intervals: 18 patterns, so 36 baselines and 648 pairs.

The table marks 6, 8 and 10 intervals; figures and text speak of six a size (section 5.4.1: three clusters before the
threshold and three after it, 5 ms, 1 ms and 500 us of 512 KB, 50, 10 and 5 ms of 4 MB).
"""

DETAIL_OWN = tuple(each * MS for each in (50, 10, 5, 4, 3, 2, 1.5, 1, 0.5, 0.1))
DETAIL_BESIDE = tuple(each * MS for each in (5, 1, 0.5, 0.1))
"""Intervals of 4 MB against 4 MB in figures 5.4 and 5.7: of the measured job, of the other; not printed."""

CHECKPOINT = 0.0
"""Interval of a job that writes without a pause."""

THESIS_FABRIC = "xgft:3:18,18,4:1,18,2:1,1,9@100"
"""1,296 hosts, 72 leaves, 72 and 36 switches above, 12.5 GB/s."""

WHOLE_BYTES = 4_300_000_000
"""What a client writes in all in section 6.5.3."""

SURVEY = Effort(least_warm_up=0, messages=60, background=20, hops=2e10)
"""Of hundreds of simulations, which take four times as long with 50 messages of warm-up each."""
QUICK = Effort(warm_up=20, least_warm_up=0, messages=20, background=5, hops=1e9)
FULL = Effort(precision=0.0, warm_up=50, least_warm_up=0, messages=1000, background=50, hops=1e13)


def mpi(size: int = 4 * KIB, interval: float = 500 * US, share: float = 0.5) -> Workload:
    """An MPI job of random pairs."""
    return Workload(MPI, Role.PAIRS, size, interval_ns=interval, share=share)


def io(
    size: int = 4 * MIB, interval: float = CHECKPOINT, share: float = 0.5, window: float = 0.0, limit: int = 0
) -> Workload:
    """An I/O job."""
    return Workload(IO, Role.IO, size, interval_ns=interval, window_ns=window, share=share, limit=limit)


def cells_of(
    setting: Setting, workloads: Sequence[Workload], measured: str, seeds: Sequence[int], **labels: str
) -> list[Cell]:
    """Give the baseline and the interference run of a job, for each seed."""
    both = [("baseline", (measured,)), ("interference", tuple(each.name for each in workloads))]
    return [
        Cell(setting, tuple(workloads), running, measured, seed, (*labels.items(), ("run", run)))
        for seed in seeds
        for run, running in both
    ]
