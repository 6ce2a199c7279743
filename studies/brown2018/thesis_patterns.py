# SPDX-License-Identifier: Apache-2.0
"""The simulated machine and the traffic patterns of chapters 5 and 6, from section 5.3 and table 5.1."""

from __future__ import annotations

from collections.abc import Mapping

from ibprof_lab.simulation.workload.workloads import IO, MPI, Role, Workload

KIB, MIB = 1 << 10, 1 << 20
US, MS = 1e3, 1e6

THESIS_FABRIC = "xgft:3:18,18,4:1,18,2:1,1,9@100"
"""1,296 hosts, 72 leaf switches, 72 switches of level 2, 36 switches of level 3, links of 12.5 GB/s."""

TABLE_5_1: Mapping[int, tuple[float, ...]] = {
    4 * KIB: (500 * US, 100 * US, 50 * US, 10 * US, 5 * US, 1 * US),
    512 * KIB: (5 * MS, 1 * MS, 500 * US, 100 * US, 50 * US, 10 * US),
    4 * MIB: (50 * MS, 10 * MS, 5 * MS, 1 * MS, 500 * US, 100 * US),
}
"""Bytes -> intervals. I/O and MPI have 18 patterns each: 36 baselines (a pattern alone) and 324 pairs.

Table 5.1 marks 6, 8 and 10 intervals for the three sizes. Figures and text use six intervals of each size (section
5.4.1): three above and three below the threshold. Above the threshold are 5 ms, 1 ms and 500 µs for 512 KB, and 50, 10
and 5 ms for 4 MB.
"""

INTERVALS = {size: [interval / US for interval in row] for size, row in TABLE_5_1.items()}
"""Bytes -> intervals in µs, equal to the values in tables of means."""

DETAIL_OWN = tuple(each * MS for each in (50, 10, 5, 4, 3, 2, 1.5, 1, 0.5, 0.1))
DETAIL_OTHER = tuple(each * MS for each in (5, 1, 0.5, 0.1))
"""Intervals of the measured and of the other job in figures 5.4 and 5.7. The thesis does not print the intervals."""


def mpi(size: int = 4 * KIB, interval: float = 500 * US, share: float = 0.5) -> Workload:
    """Return an MPI job in which random pairs send messages."""
    return Workload(MPI, Role.PAIRS, size, interval_ns=interval, share=share)


def io(size: int = 4 * MIB, interval: float = 0.0, share: float = 0.5) -> Workload:
    """Return an I/O job. If `interval` is 0, the job writes a checkpoint."""
    return Workload(IO, Role.IO, size, interval_ns=interval, share=share)
