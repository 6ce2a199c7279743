# SPDX-License-Identifier: Apache-2.0
"""Time of the Linpack benchmark by HPL's own model: processes on a grid, each with links of its own.

Source: A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, "HPL: a portable implementation of the high-performance
Linpack benchmark", netlib.org/benchmark/hpl, page "scalability":

    T = 2 N^3 gamma / (3 P Q) + beta N^2 (3 P + Q) / (2 P Q) + alpha N ((NB + 1) log2(P) + P) / NB

with gamma s/Flop of a process in matrix products, alpha s and beta s/word of a message, NB the block size. In contrast
to slide 19, which puts all bytes over one bandwidth, each process moves its own share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ibprof_lab.scaling.analytic_kernels import WORD
from ibprof_lab.scaling.exchange_fit import ConfidenceInterval

BLOCK = 192
"""NB, unless another one is given."""


@dataclass(frozen=True, slots=True)
class HplRun:
    """A run of HPL.

    Attributes:
        n: order of the matrix, N.
        block: NB.
        rows, columns: P and Q of the grid.
    """

    n: float
    block: float
    rows: int
    columns: int

    @property
    def operations(self) -> float:
        """Operations that R_max counts, 2/3 N^3, in Flop."""
        return 2 / 3 * self.n**3

    @property
    def processes(self) -> int:
        """P Q."""
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class HplTimes:
    """Times of a run, in seconds: computing, bytes, latencies."""

    computing: float
    moving: float
    waiting: float

    @property
    def total(self) -> float:
        """Time of the run."""
        return self.computing + self.moving + self.waiting


def time_hpl(run: HplRun, rate: float, latency: float, bandwidth: float) -> HplTimes:
    """Return the times of a run.

    Args:
        run: size and grid.
        rate: 1 / gamma, of a process in matrix products, in Flop/s.
        latency: alpha, in seconds.
        bandwidth: of a process, in Byte/s.

    Raises:
        ValueError: there are fewer blocks than rows or columns, so that processes have no even share.
    """
    if run.n / run.block < max(run.rows, run.columns):
        raise ValueError(
            f"n = {run.n:g} has {run.n / run.block:.0f} blocks of {run.block:g}, fewer than the {run.rows} x "
            f"{run.columns} grid has rows or columns: the model holds for at least one block each"
        )
    both = run.processes
    beta = WORD / bandwidth
    return HplTimes(
        run.operations / both / rate,
        beta * run.n**2 * (3 * run.rows + run.columns) / (2 * both),
        latency * run.n * ((run.block + 1) * math.log2(run.rows) + run.rows) / run.block,
    )


def predict_hpl(
    run: HplRun, rate: ConfidenceInterval, latency: ConfidenceInterval, bandwidth: ConfidenceInterval
) -> ConfidenceInterval:
    """Return the performance in Flop/s: in the middle, and with all parameters at their worse and better ends."""
    ends = (
        (rate.value, latency.value, bandwidth.value),
        (rate.low, latency.high, bandwidth.low),
        (rate.high, latency.low, bandwidth.high),
    )
    middle, low, high = (run.operations / time_hpl(run, *end).total for end in ends)
    return ConfidenceInterval(middle, low, high)
