# SPDX-License-Identifier: Apache-2.0
"""Latencies of a job's messages, their uncertainty, and the effort to measure them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.engine.deadlock import describe_deadlock
from ibprof_lab.simulation.engine.packet_engine import Simulation
from ibprof_lab.simulation.measure.latency_statistics import Slice, average_batches, half_interval
from ibprof_lab.simulation.measure.run_observer import Operations, bin_values, list_bins

_SLICES = 40
"""Number of slices of the measured time, for means over time."""

QUANTILES = (0.25, 0.5, 0.75, 0.95, 0.99)

CHUNKS = 40
"""Initial number of parts for extending the simulated time."""

NO_END = 1 << 62
"""Number of messages that stands for no limit."""

_FIRST_CHUNK_NS = 50e3

_LEAST = 10
"""Smallest number of measured operations of a collective, since one operation may take tens of messages."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Required precision and limits of a measurement.

    Attributes:
        precision: half of the 95% confidence interval relative to the mean; 0 to use `warm_up` and `messages` directly.
        warm_up: largest number of messages per client that are left out; fewer if the mean is stationary earlier.
        least_warm_up: average number of messages per client that are always left out, up to `warm_up`. Clients that go
            from server to server arrange themselves over tens of messages, too slowly for a test on a few messages.
            Jobs that end leave out only messages before a stationary mean, and messages before the background's
            requests have passed.
        messages: number of messages per client; the measurement then ends.
        background: number of requests per client of other jobs before the measurement starts.
        hops: largest number of packet hops before giving up.
        steady: half of a 95% interval relative to the mean; 0 for never. The interval is that of the difference from
            the mean of all `messages`. At this half, the mean is in a steady state and the remaining messages are
            skipped.
    """

    precision: float = 0.05
    warm_up: int = 50
    least_warm_up: int = 50
    messages: int = 200
    background: int = 50
    hops: float = 1e10
    steady: float = 0.0

    def left_out(self, limit: int) -> int:
        """Return the number of messages per client that are always left out; `limit` is 0 for a job without an end."""
        return 0 if limit else min(self.least_warm_up, self.warm_up)


QUICK = Effort(warm_up=20, least_warm_up=0, messages=20, background=5, hops=1e9)
SURVEY = Effort(least_warm_up=0, messages=60, background=20, hops=2e10)
"""For hundreds of simulations, which take four times as long with 50 messages of warm-up each."""
FULL = Effort(precision=0.0, warm_up=50, least_warm_up=0, messages=1000, background=50, hops=1e13, steady=0.005)
"""Measurement with detection of steady states; `replace(FULL, steady=0.0)` simulates every message."""

EFFORTS: Mapping[str, Effort] = {"quick": QUICK, "survey": SURVEY, "full": FULL}


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of the messages of a job, in ns.

    Attributes:
        messages: number of measured messages, after the warm-up.
        mean: mean over messages.
        half: half of the mean's 95% confidence interval, by means of batches or of whole rounds; nan with too few.
        node_mean: mean of the clients' means, which does not over-sample quiet times.
        deviation: standard deviation.
        least, most: smallest and largest latency.
        quantiles: values at `QUANTILES`.
        left_out_ns: simulated time before the measurement.
        measured_ns: simulated time of the measurement.
        is_settled: True if the required precision is reached.
        note: reason if it is not reached, or the rule that ended the measurement.
        change: relative change of the mean over the measured time, if this change is the reason; else 0.
        histogram: lower edge and upper edge in ns, and messages, of each non-empty bin of `watch.bin_edges`.
        by_client: host number, messages and their mean, of each client with messages.
        over_time: begin and end in ns, messages and their mean, of equal slices of the measured time.
        operations: number of operations of a collective that began after the warm-up; 0 for other jobs.
        operation_mean: mean duration of the operations, from the first message's start to the last one's arrival.
        operation_half: half of its 95% confidence interval, by means of batches in time; nan with too few operations.
    """

    messages: int
    mean: float
    half: float
    node_mean: float
    deviation: float
    least: float
    most: float
    quantiles: tuple[float, ...]
    left_out_ns: float
    measured_ns: float
    is_settled: bool
    note: str
    change: float = 0.0
    histogram: tuple[tuple[float, float, int], ...] = ()
    by_client: tuple[tuple[int, int, float], ...] = ()
    over_time: tuple[Slice, ...] = ()
    operations: int = 0
    operation_mean: float = math.nan
    operation_half: float = math.nan


NOTHING = Latency(0, *(math.nan,) * 6, (math.nan,) * len(QUANTILES), 0.0, 0.0, False, "no message was measured")
ON_HOSTS = "all of its messages stay on their hosts"


def describe(simulation: Simulation, samples: npt.NDArray[Any], begin: float, half: float) -> Latency:
    """Return the statistics of at least one message, without a judgement of their precision."""
    to_ns = simulation.network.to_ns(1)
    end, values = (samples["start"] + samples["ticks"]) * to_ns, samples["ticks"] * to_ns
    by_client = _average_by_client(simulation, samples["client"], values)
    return Latency(
        messages=len(values),
        mean=float(values.mean()),
        half=half,
        node_mean=float(np.mean([each for _, _, each in by_client])),
        deviation=float(values.std()),
        least=float(values.min()),
        most=float(values.max()),
        quantiles=tuple(np.quantile(values, QUANTILES).tolist()),
        left_out_ns=begin,
        measured_ns=float(end[-1]) - begin,
        is_settled=False,
        note="",
        histogram=list_bins(bin_values(values)),
        by_client=by_client,
        over_time=_average_over_time(end, values, begin),
    )


def _average_by_client(
    simulation: Simulation, client: npt.NDArray[Any], values: npt.NDArray[np.float64]
) -> tuple[tuple[int, int, float], ...]:
    messages, total = np.bincount(client), np.bincount(client, values)
    return tuple(
        (int(simulation.host_of_client[each]), int(messages[each]), float(total[each] / messages[each]))
        for each in np.flatnonzero(messages)
    )


def _average_over_time(
    end: npt.NDArray[np.float64], values: npt.NDArray[np.float64], begin: float
) -> tuple[Slice, ...]:
    edges = np.linspace(begin, float(end[-1]), _SLICES + 1)
    which = np.clip(np.searchsorted(edges, end, side="left") - 1, 0, _SLICES - 1)
    messages, total = np.bincount(which, minlength=_SLICES), np.bincount(which, values, _SLICES)
    return tuple(
        (float(edges[at]), float(edges[at + 1]), int(messages[at]), float(total[at] / messages[at]))
        for at in np.flatnonzero(messages)
    )


def note_deadlock(latency: Latency, simulation: Simulation) -> Latency:
    """Return the latency as unsettled, with the cycle of waiting packets as note."""
    cycle = describe_deadlock(simulation.network, simulation.find_waits(only_stuck=True))
    return replace(latency, is_settled=False, note=f"deadlock: packets wait for each other in a cycle: {cycle}")


def note_all_sent(latency: Latency, effort: Effort, stay: bool) -> Latency:
    """Return the latency of a job that has ended; `stay` is True if its later messages stayed within hosts."""
    early = f"all messages were sent before the other jobs had made {effort.background} requests of each client"
    note = "all messages were sent" if latency.messages else ON_HOSTS if stay else early
    return replace(latency, is_settled=latency.messages > 0, note=note)


def list_limits(simulation: Simulation) -> npt.NDArray[np.uint64]:
    """Return the total number of messages of each client."""
    return np.array([job.limit or NO_END for job in simulation.jobs], np.uint64)[simulation.job_of_client]


def find_first_chunk(simulation: Simulation) -> int:
    """Return the initial number of ticks per simulation run."""
    return max(simulation.network.ticks(_FIRST_CHUNK_NS), 1)


def leave_hosts(
    simulation: Simulation, clients: npt.NDArray[np.bool_], samples: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
    """Return a mask of samples that belong to the given clients and leave their hosts."""
    client = samples["client"]
    chosen: npt.NDArray[np.bool_] = clients[client] & (samples["host"] != simulation.host_of_client[client])
    return chosen


class MeanOperation:
    """Durations of a collective's operations; empty for other jobs."""

    def __init__(self, simulation: Simulation, clients: npt.NDArray[np.bool_]) -> None:
        job = int(simulation.job_of_client[clients][0])
        self._of = Operations(simulation, job) if simulation.is_collective[job] else None
        self._to_ns = simulation.network.to_ns(1)
        self._begin: list[npt.NDArray[np.int64]] = []
        self._ticks: list[npt.NDArray[np.int64]] = []

    def note(self, samples: npt.NDArray[Any]) -> None:
        """Record the next messages."""
        if self._of:
            begin, ticks = self._of.note(samples)
            self._begin.append(begin)
            self._ticks.append(ticks)

    def add_to(self, latency: Latency) -> Latency:
        """Add the operations that began after the warm-up."""
        if not self._of:
            return latency
        ticks = np.concatenate(self._ticks)[np.concatenate(self._begin) * self._to_ns >= latency.left_out_ns]
        durations = ticks * self._to_ns
        mean = float(durations.mean()) if len(ticks) else math.nan
        half = half_interval(average_batches(durations, _LEAST))
        return replace(latency, operations=len(ticks), operation_mean=mean, operation_half=half)

    def are_enough(self, latency: Latency) -> bool:
        """Return True if there are enough operations, or if the job has none."""
        return not self._of or latency.operations >= _LEAST

    def is_narrow(self, latency: Latency, precision: float) -> bool:
        """Return True if the interval of the mean duration is narrow enough, or if the job has no operations."""
        return not self._of or latency.operation_half <= precision * latency.operation_mean
