# SPDX-License-Identifier: Apache-2.0
"""Time of the Linpack benchmark by the model of HPL's authors, in which each process has a separate link.

Source: A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, "HPL: a portable implementation of the high-performance
Linpack benchmark", netlib.org/benchmark/hpl, page "scalability":

    T = 2 N^3 gamma / (3 P Q) + beta N^2 (3 P + Q) / (2 P Q) + alpha N ((NB + 1) log2(P) + P) / NB

gamma: s/Flop of a process in matrix products; alpha: s and beta: s/word of a message; NB: block size. In
`scaling_model.linpack`, all bytes share one link.

If k processes share a node's adapter (rate b) and memory (rate m), the terms change as follows. The sender and the
receiver copy each word of a message, and each copy reads and writes memory. Beta becomes w k (f / b + 4 / m): a word
has w bytes, and f is the fraction of words that leave the node. HPL places successive processes of a row on a node. The
N^2 / (2 P) words of panels move along rows, all other words along columns. After each block of NB columns, the whole
matrix is read and written: gamma grows by 8 k / (NB m). For each of N pivots, processes exchange two rows of the panel
in log2(P) rounds. The exchanges send 2 N (NB + 2) log2(P) more words along columns (HPL_pdmxswp).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ibprof.errors import InconsistentError, UsageError
from ibprof.text.quantities import format_bytes, format_seconds
from ibprof_lab.lab_choices import UNITS
from ibprof_lab.scaling.exchange_fit import ConfidenceInterval
from ibprof_lab.scaling.measured.loggp import read_loggp
from ibprof_lab.scaling.scaling_document import add_interval
from ibprof_lab.scaling.scaling_model import WORD


@dataclass(frozen=True, slots=True)
class HplRun:
    """A run of HPL.

    Attributes:
        n: order N of the matrix.
        block: block size NB.
        rows, columns: P and Q of the grid.
    """

    n: float
    block: float
    rows: int
    columns: int

    @property
    def operations(self) -> float:
        """Number of operations that R_max counts, 2/3 N^3, in Flop."""
        return 2 / 3 * self.n**3

    @property
    def processes(self) -> int:
        """Number of processes, P Q."""
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class NodeSharing:
    """Processes that share a node.

    Attributes:
        processes: number k of processes on a node.
        memory: total rate m of a node's memory, in Byte/s, as STREAM measures it; infinite to ignore memory.
    """

    processes: int
    memory: float = math.inf


@dataclass(frozen=True, slots=True)
class HplTimes:
    """Times of a run in seconds: computing, transfer of bytes (moving), latencies (waiting)."""

    computing: float
    moving: float
    waiting: float

    @property
    def total(self) -> float:
        """Time of the run."""
        return self.computing + self.moving + self.waiting


def time_hpl(
    run: HplRun, rate: float, latency: float, bandwidth: float, sharing: NodeSharing | None = None
) -> HplTimes:
    """Return the times of a run.

    Args:
        run: size and grid.
        rate: 1 / gamma, rate of a process in matrix products, in Flop/s.
        latency: alpha, in seconds.
        bandwidth: bandwidth of a process, in Byte/s; bandwidth of a node if `sharing` is given.
        sharing: processes that share a node; None if each process has its own node, as in HPL's own model.

    Raises:
        ValueError: the matrix has fewer blocks than the grid has rows or columns, so that some processes have no work.
    """
    if run.n / run.block < max(run.rows, run.columns):
        raise ValueError(
            f"n = {run.n:g} has {run.n / run.block:.0f} blocks of {run.block:g}, fewer than the {run.rows} x "
            f"{run.columns} grid has rows or columns: each row and each column needs a block"
        )
    per_flop = 1 / rate
    along_rows, along_columns = run.n**2 / (2 * run.rows), 3 * run.n**2 / (2 * run.columns)
    moving = (along_rows + along_columns) / bandwidth
    if sharing:
        shared, columns = sharing.processes, run.columns
        per_flop += WORD / run.block * shared / sharing.memory
        along_columns += 2 * run.n * (run.block + 2) * math.log2(run.rows)
        # A message leaves the node at every k-th process of a row, and at the end of a row that ends within a node.
        whole_rows = shared // columns
        row_leaves = 0.0 if shared % columns == 0 else min(1.0, 1 / shared + (1 / columns if columns % shared else 0))
        column_leaves = 0.0 if whole_rows >= run.rows else 1 / max(whole_rows, 1)
        leaving = along_rows * row_leaves + along_columns * column_leaves
        moving = shared * (leaving / bandwidth + _COPIED * (along_rows + along_columns) / sharing.memory)
    return HplTimes(
        run.operations / run.processes * per_flop,
        WORD * moving,
        latency * run.n * ((run.block + 1) * math.log2(run.rows) + run.rows) / run.block,
    )


def predict_hpl(
    run: HplRun,
    rate: ConfidenceInterval,
    latency: ConfidenceInterval,
    bandwidth: ConfidenceInterval,
    sharing: NodeSharing | None = None,
) -> ConfidenceInterval:
    """Return the performance in Flop/s. The interval's ends use the worst, and the best, values of all parameters."""
    ends = (
        (rate.value, latency.value, bandwidth.value),
        (rate.low, latency.high, bandwidth.low),
        (rate.high, latency.low, bandwidth.high),
    )
    middle, low, high = (run.operations / time_hpl(run, *end, sharing).total for end in ends)
    return ConfidenceInterval(middle, low, high)


_VALIDITY = (
    "the model has neither look-ahead, which hides a part of transfer and latency, nor transfers to accelerators. "
    "The performance without messages is the limit with look-ahead",
)
"""Limits of the model, which all predictions state."""

_ALONE = (
    "each process is assumed to have a separate adapter and memory bus. If processes share adapters, give "
    "--slots and --memory; else the predicted performance is too high (up to twice on dual processors of the year 2000)"
)
_SHARED = (
    "the model predicts 16 published results, with 2 and 4 processes per node, with errors of -13% to +28%. The errors "
    "are largest if n is below 1,000 times the grid's rows. Successive processes of a row are assumed to share a node"
)

_COPIED = 4
"""Bytes of memory traffic per byte of a message: the sender and the receiver each read and write the byte."""


def query_hpl(
    n: float,
    nb: float,
    grid: tuple[int, int],
    rate: tuple[float, float],
    bandwidth: float | None,
    latency: float,
    slots: int | None,
    memory: float | None,
    delays: Path | None,
    unit: str,
) -> dict[str, Any]:
    """Return a run's performance with its interval, and the fractions of time for computing, moving and waiting.

    Args:
        n, nb: order of the matrix, and block size.
        grid: P and Q.
        rate: smallest and largest rate of a process in matrix products, in Flop/s.
        bandwidth: bandwidth of a process in Byte/s, or of a node if `slots` is given; None if `delays` is given.
        latency: latency of a message, in seconds.
        slots: number of processes per node; None for one.
        memory: rate of a node's memory, in Byte/s; None if it is not a limit.
        delays: file of measured delays; None to use the arguments `bandwidth` and `latency`.
        unit: unit of the delays if the file does not state it, from `UNITS`.

    Raises:
        UsageError: both or neither of `bandwidth` and `delays` are given, `memory` lacks `slots`, or the grid has fewer
            processes than `slots`.
        InputError: the delays cannot be read.
        InconsistentError: no bandwidth can be computed from the delays, or the model is not applicable.
    """
    if (bandwidth is None) == (delays is None):
        raise UsageError("give one of --bandwidth and --delays")
    if memory is not None and slots is None:
        raise UsageError("--memory needs --slots, the number of processes on a node")
    if slots is not None and slots > grid[0] * grid[1]:
        raise UsageError(f"--slots: expected at most the grid's {grid[0] * grid[1]} processes, found {slots}")
    if delays is not None:
        long = read_loggp(delays, UNITS[unit]).segments[-1]
        if not long.per_byte.low > 0:
            raise InconsistentError(f"{delays}: expected long messages that take longer than short ones, found none")
        per_byte, start = long.per_byte, long.start
        rate_of_bytes = ConfidenceInterval(1 / per_byte.value, 1 / per_byte.high, 1 / per_byte.low)
    else:
        assert bandwidth is not None
        rate_of_bytes, start = ConfidenceInterval(*[bandwidth] * 3), ConfidenceInterval(*[latency] * 3)
    low, high = rate
    rate_of_flops = ConfidenceInterval((low + high) / 2, low, high)
    run = HplRun(n, nb, *grid)
    sharing = NodeSharing(slots, memory or math.inf) if slots else None
    try:
        performance = predict_hpl(run, rate_of_flops, start, rate_of_bytes, sharing)
    except ValueError as error:
        raise InconsistentError(f"no prediction: {error}") from error
    seconds = time_hpl(run, rate_of_flops.value, start.value, rate_of_bytes.value, sharing)
    return {
        "n": run.n,
        "nb": run.block,
        "grid": list(grid),
        "performance": asdict(performance),
        "share_of_rate": performance.value / (run.processes * rate_of_flops.value),
        "without_messages": run.operations / seconds.computing,
        "seconds": asdict(seconds),
        "bandwidth": asdict(rate_of_bytes),
        "latency_s": asdict(start),
        "share": slots,
        "memory": memory,
        "notes": [*_VALIDITY, _SHARED if sharing else _ALONE],
    }


def print_hpl(console: Console, document: dict[str, Any]) -> None:
    """Print the prediction."""
    found, seconds = document["performance"], document["seconds"]
    rows, columns = document["grid"]
    texts = [_format_flops(found[key]) for key in ("value", "low", "high")]
    console.print(
        Text(
            f"HPL with n = {document['n']:g} on {rows} x {columns} processes: {add_interval(texts)}, "
            f"{document['share_of_rate']:.1%} of the processes' rate in matrix products.",
            style="bold",
        )
    )
    names = {"computing": "computing", "moving": "transfer of bytes", "waiting": "latency"}
    parts = ", ".join(f"{text} {format_seconds(seconds[name])}" for name, text in names.items())
    console.print(f"time: {parts}")
    console.print(f"performance without messages: {_format_flops(document['without_messages'])}")
    for note in document["notes"]:
        console.print(f"note: {note}")


def _format_flops(rate: float) -> str:
    return format_bytes(rate).replace("B", "Flop/s")
