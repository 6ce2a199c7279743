# SPDX-License-Identifier: Apache-2.0
"""Query of HPL's model: options in, JSON document out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ibprof.errors import InconsistentError, UsageError
from ibprof.text.quantities import format_bytes, format_seconds
from ibprof_lab.latency.files.delay_files import UNITS
from ibprof_lab.scaling.exchange_fit import ConfidenceInterval
from ibprof_lab.scaling.hpl import HplRun, predict_hpl, time_hpl
from ibprof_lab.scaling.measured.loggp import read_loggp


@dataclass(frozen=True, slots=True)
class HplOptions:
    """A run of HPL, and its machine.

    Attributes:
        n, nb: order of the matrix, and block size.
        grid: P and Q.
        rate: of a process in matrix products, in Flop/s: smallest and largest.
        bandwidth: of a process, in Byte/s; None with `delays`.
        latency: in seconds.
        delays: measured ones, in place of both; None without.
        unit: of these, of `UNITS`, where the file does not say it.
        json: whether the document is for programs.
    """

    n: float
    nb: float
    grid: tuple[int, int]
    rate: tuple[float, float]
    bandwidth: float | None
    latency: float
    delays: Path | None
    unit: str
    json: bool


def query_hpl(options: HplOptions) -> dict[str, Any]:
    """Return the performance of a run with its interval, and where its time goes.

    Raises:
        UsageError: there is no source of the bandwidth, or more than one.
        InputError: the delays cannot be read.
        InconsistentError: the delays show no bandwidth, or the model does not hold.
    """
    if (options.bandwidth is None) == (options.delays is None):
        raise UsageError("give one of --bandwidth and --delays")
    if options.delays is not None:
        long = read_loggp(options.delays, UNITS[options.unit]).segments[-1]
        if not long.per_byte.low > 0:
            raise InconsistentError(f"{options.delays}: long messages take no longer than short ones: no bandwidth")
        per_byte = long.per_byte
        bandwidth = ConfidenceInterval(1 / per_byte.value, 1 / per_byte.high, 1 / per_byte.low)
        latency = long.start
    else:
        assert options.bandwidth is not None
        bandwidth = ConfidenceInterval(*[options.bandwidth] * 3)
        latency = ConfidenceInterval(*[options.latency] * 3)
    low, high = options.rate
    rate = ConfidenceInterval((low + high) / 2, low, high)
    run = HplRun(options.n, options.nb, *options.grid)
    try:
        performance = predict_hpl(run, rate, latency, bandwidth)
    except ValueError as error:
        raise InconsistentError(f"no prediction: {error}") from error
    return {
        "n": run.n,
        "nb": run.block,
        "grid": list(options.grid),
        "performance": asdict(performance),
        "share_of_rate": performance.value / (run.processes * rate.value),
        "seconds": asdict(time_hpl(run, rate.value, latency.value, bandwidth.value)),
        "bandwidth": asdict(bandwidth),
        "latency_s": asdict(latency),
    }


def print_hpl(console: Console, document: dict[str, Any]) -> None:
    """Print the prediction."""
    found, seconds = document["performance"], document["seconds"]
    rows, columns = document["grid"]
    texts = [format_bytes(found[key]).replace("B", "Flop/s") for key in ("value", "low", "high")]
    console.print(
        Text(
            f"HPL with n = {document['n']:g} on {rows} x {columns} processes: {texts[0]} ({texts[1]} to {texts[2]}), "
            f"{document['share_of_rate']:.1%} of what they reach in matrix products.",
            style="bold",
        )
    )
    parts = ", ".join(f"{name} {format_seconds(seconds[name])}" for name in ("computing", "moving", "waiting"))
    console.print(f"time: {parts}")
    console.print(
        "note: without look-ahead, which hides part of moving and waiting, and without accelerators, whose own "
        "transfers the model does not have"
    )
