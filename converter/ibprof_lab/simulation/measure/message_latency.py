# SPDX-License-Identifier: Apache-2.0
"""Latencies of a job's messages, their statistics (warm-up, drift, intervals), and the effort to measure them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.engine.deadlock import describe_deadlock
from ibprof_lab.simulation.engine.packet_engine import Simulation
from ibprof_lab.simulation.measure.run_observer import Operations, bin_values, list_bins

_SLICES = 40
"""Number of slices of the measured time, for means over time."""

QUANTILES = (0.25, 0.5, 0.75, 0.95, 0.99)

CHUNKS = 40
"""A simulation continues in steps of equal length. The length doubles after this number of steps."""

NO_END = 1 << 62
"""Number of messages that stands for no limit."""

_FIRST_CHUNK_NS = 50e3

_LEAST = 10
"""At least this many operations of a collective are measured, and are in each batch. A minimum of messages is not
enough, since one operation may take tens of messages."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Required precision and limits of a measurement.

    Attributes:
        precision: half of the 95% confidence interval relative to the mean; 0 to use `warm_up` and `messages` directly.
        warm_up: at most this many messages per client are left out; fewer if the mean is stationary earlier.
        least_warm_up: average number of messages per client that are always left out, up to `warm_up`. The order of
            clients that go from server to server settles over tens of messages, too slowly for a test on a few
            messages. Jobs that end leave out only messages before a stationary mean, and messages before the
            background's requests have passed.
        messages: the measurement ends after this many messages per client.
        background: number of requests per client of other jobs before the measurement starts.
        hops: the measurement gives up after this many packet hops.
        steady: half of a 95% interval relative to the mean; 0 for no detection. If the mean of the measured messages is
            known to be this near to the mean of all `messages`, the job is in a steady state, and the remaining
            messages are skipped.
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
"""Effort for hundreds of simulations. With a warm-up of 50 messages, each simulation takes four times as long."""
FULL = Effort(precision=0.0, warm_up=50, least_warm_up=0, messages=1000, background=50, hops=1e13, steady=0.005)
"""Measurement with detection of steady states; `replace(FULL, steady=0.0)` simulates every message."""

EFFORTS: Mapping[str, Effort] = {"quick": QUICK, "survey": SURVEY, "full": FULL}


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of the messages of a job, in ns.

    Attributes:
        messages: number of measured messages, after the warm-up.
        mean: mean over messages.
        half: half of the mean's 95% confidence interval, computed from the means of batches or of whole rounds; nan
            with too few of these.
        node_mean: mean of the clients' means, which does not over-sample quiet times.
        deviation: standard deviation.
        least, most: smallest and largest latency.
        quantiles: values at `QUANTILES`.
        left_out_ns: simulated time before the measurement.
        measured_ns: simulated time of the measurement.
        is_settled: True if the required precision is reached.
        note: reason if the precision is not reached; else the rule that ended the measurement.
        change: relative change of the mean over the measured time, if this change makes the precision too low; else 0.
        histogram: lower edge and upper edge in ns, and messages, of each non-empty bin of `watch.bin_edges`.
        by_client: of each client with messages: host number, number of messages, mean latency.
        over_time: of each of equal slices of the measured time: begin and end in ns, number of messages, mean latency.
        operations: number of operations of a collective that began after the warm-up; 0 for other jobs.
        operation_mean: mean duration of the operations, from the start of the first message to the arrival of the last
            message.
        operation_half: half of the 95% confidence interval of `operation_mean`, computed from the means of batches in
            time; nan with too few operations.
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


BATCHES = 20
"""Number of successive batches of messages. The means of the batches give the interval of the mean over all
messages."""

_TREND_PARTS = 10
"""Number of parts of the measured time, to whose means a line is fitted. A part is long compared with a message, so
that the means are nearly independent."""

LEAST = 25
"""At least this many messages per client are measured, on average over the clients."""

_GROWTH = 1.2
_MOST_CORRELATED = 0.9

Values = npt.NDArray[np.floating]

Slice = tuple[float, float, int, float]
"""Begin and end of a slice in ns, number of messages completed in the slice, and their mean latency."""


def half_interval(means: npt.NDArray[np.float64]) -> float:
    """Return half of the 95% interval of the mean of means; nan with fewer than two means."""
    from scipy.stats import t  # noqa: PLC0415  (slow to import)

    if len(means) < 2:
        return math.nan
    return float(t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / math.sqrt(len(means)))


def average_parts(values: Values, parts: int) -> npt.NDArray[np.float64]:
    """Return the means of successive parts of a series, with parts of nearly equal length."""
    return np.array([part.mean() for part in np.array_split(values, parts)])


def average_batches(values: Values, least: int) -> npt.NDArray[np.float64]:
    """Return the means of batches of correlated values; no batch has fewer than `least` values."""
    batches = min(BATCHES, len(values) // 2) if len(values) >= least else 0
    return average_parts(values, batches) if batches else np.zeros(0)


def find_warm_up(values: npt.NDArray[np.float64]) -> int:
    """Return the number of leading values to leave out by MSER: the cut with the smallest standard error of the rest.

    At most half of the values are left out. If the minimum lies at that limit, the series is not stationary and the
    whole half is left out.

    Source: K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6),
    1997.
    """
    count = len(values)
    if count < 4:
        return count // 2
    tail_sum = np.cumsum(values[::-1])[::-1]
    tail_squares = np.cumsum(values[::-1] ** 2)[::-1]
    left = count - np.arange(count)
    error = (tail_squares - tail_sum**2 / left) / left.astype(float) ** 2
    return int(np.argmin(error[: count // 2 + 1]))


@dataclass(frozen=True, slots=True)
class Drift:
    """Change of a mean from the beginning of the measured time to its end, by a straight line.

    Attributes:
        change: relative change of the mean.
        half: half of the 95% confidence interval of the change; nan with too few messages.
    """

    change: float
    half: float

    def exceeds(self, part: float) -> bool:
        """Return True if the whole interval of the change is above `part`, or below -`part`."""
        return abs(self.change) - self.half > part


def find_drift(slices: Sequence[Slice]) -> Drift:
    """Fit a line to the means of ten equal parts of time, by least squares.

    Args:
        slices: slices in order of time, without empty ones.
    """
    from scipy.stats import linregress, t  # noqa: PLC0415  (slow to import)

    if not slices:
        return Drift(math.nan, math.nan)
    begin, end = slices[0][0], slices[-1][1]
    middle, messages, mean = np.array([((first + last) / 2, count, each) for first, last, count, each in slices]).T
    part = np.minimum((middle - begin) / (end - begin) * _TREND_PARTS, _TREND_PARTS - 1).astype(int)
    count = np.bincount(part, messages, _TREND_PARTS)
    there = np.flatnonzero(count)
    if len(there) < _TREND_PARTS // 2:
        return Drift(math.nan, math.nan)
    of_part = np.bincount(part, messages * mean, _TREND_PARTS)[there] / count[there]
    line = linregress((there + 0.5) / _TREND_PARTS, of_part)
    whole = float(np.average(mean, weights=messages))
    half = float(t.ppf(0.975, len(there) - 2)) * line.stderr
    return Drift(float(line.slope) / whole, float(half) / whole)


class SteadyState:
    """Detection of the steady state of a growing series: the remaining messages need not be simulated.

    The mean of the messages so far represents the mean of all messages if the two differ little and the mean does not
    drift. The 95% interval of the difference is the interval of batch means, times the root of the share of messages
    that remain, since the measured messages are a sample from a finite number of messages. Correlated batches widen the
    interval, by the factor of a first-order autoregressive process. Each test may end the run too early by chance.
    Tests are therefore few, at numbers of messages that grow geometrically.

    Args:
        part: half of the 95% interval that is narrow enough, relative to the mean; 0 for no detection.
        clients: number of clients.
        messages: total number of messages of a client.

    Source: A. M. Law and J. S. Carson, "A sequential procedure for determining the length of a steady-state
    simulation", Operations Research 27(5), 1979; W. G. Cochran, "Sampling Techniques", Wiley, 1977, section 2.6; G. S.
    Fishman, "Principles of Discrete Event Simulation", Wiley, 1978, section 5.8.
    """

    def __init__(self, part: float, clients: int, messages: int) -> None:
        self._part = part
        self._due = LEAST * max(clients, 1)
        self._total = messages * max(clients, 1)

    def is_reached(self, values: Values) -> bool:
        """Return True if latencies, in order of completion, are in a steady state; tests only a few lengths."""
        if not self._part or len(values) < self._due:
            return False
        self._due = math.ceil(_GROWTH * len(values))
        mean, left = float(values.mean()), 1 - len(values) / self._total
        if left <= 0:
            return False
        half = find_half(values) * math.sqrt(left)
        # If fewer messages remain than were measured, a linear drift changes the mean of all messages by less than it
        # changed the measured messages.
        change = abs(find_change(values)) * min(left / (1 - left), 1.0)
        return half <= self._part * mean and change <= 2 * self._part * mean


def find_half(values: Values) -> float:
    """Return half of the 95% interval of a series' mean, by means of batches that may be correlated."""
    means = average_parts(values, BATCHES)
    off = means - means.mean()
    variance = float((off**2).mean())
    lag = float((off[1:] * off[:-1]).mean()) / variance if variance else 0.0
    lag = min(max(lag, 0.0), _MOST_CORRELATED)
    return half_interval(means) * math.sqrt((1 + lag) / (1 - lag))


def find_change(values: Values) -> float:
    """Return the relative change of a series from beginning to end, by a line through the means of ten parts."""
    return float(np.polyfit(np.arange(_TREND_PARTS), average_parts(values, _TREND_PARTS), 1)[0]) * _TREND_PARTS


class Figure(NamedTuple):
    """A mean, and half of its 95% confidence interval in the same unit."""

    mean: float
    half: float

    @property
    def relative_half(self) -> float:
        """Half of the interval relative to the mean; 0 for a mean of 0."""
        return self.half / self.mean if self.mean else 0.0


BySeed = Mapping[int, Figure]
"""Seed -> value of the run with this seed, and the interval of the value."""


def average(figures: BySeed) -> Figure | None:
    """Return the mean over seeds and its interval by Student's t; for one seed, its figure; for no seed, None."""
    values = list(figures.values())
    if len(values) < 2:
        return values[0] if values else None
    means = np.array([each.mean for each in values])
    return Figure(float(means.mean()), half_interval(means))


def compare(figures: BySeed, others: BySeed) -> BySeed:
    """Return, by seed, the ratio of the value in `figures` to the value in `others`, for seeds with both values."""
    ratios = {}
    for seed, figure in figures.items():
        other = others.get(seed)
        if other and other.mean:
            ratio = figure.mean / other.mean
            ratios[seed] = Figure(ratio, ratio * math.hypot(figure.relative_half, other.relative_half))
    return ratios
