# SPDX-License-Identifier: Apache-2.0
"""Statistics of the latencies of a job's messages (warm-up, drift, intervals), and the effort to measure them."""

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
"""Number of equal slices of the measured time in `Latency.over_time`."""

QUANTILES = (0.25, 0.5, 0.75, 0.95, 0.99)

CHUNKS = 40
"""A simulation runs in pieces of simulated time. A piece's length doubles when the time simulated so far exceeds
`CHUNKS` such lengths."""

NO_END = 1 << 62
"""Value for a client without limit of messages, and for a round without end."""

_FIRST_CHUNK_NS = 50e3

_LEAST = 10
"""Smallest number of measured operations of a collective. Operations are counted, not messages, since one operation may
have tens of messages."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Required precision and limits of a measurement.

    Attributes:
        precision: required half width of the mean's 95% confidence interval, relative to the mean. With 0, exactly
            `warm_up` messages are left out, then `messages` are measured.
        warm_up: largest number of messages per client to leave out. If the mean is stationary earlier, fewer are left
            out.
        least_warm_up: number of messages per client, on average, that every measurement leaves out; at most `warm_up`;
            0 for jobs with a limit. The order in which clients use servers needs tens of messages to settle. The test
            for a stationary mean does not detect such slow changes.
        messages: largest number of measured messages per client.
        background: number of messages that each client of other jobs must complete before the measurement starts.
        hops: largest number of simulated packet hops; the measurement then ends without result.
        steady: the measurement ends if, with 95% confidence, the mean so far differs from the mean of all `messages` by
            less than this fraction (`SteadyState`). 0 for no such test.
    """

    precision: float = 0.05
    warm_up: int = 50
    least_warm_up: int = 50
    messages: int = 200
    background: int = 50
    hops: float = 1e10
    steady: float = 0.0

    def left_out(self, limit: int) -> int:
        """Return the number of messages per client that are always left out; `limit`: `Job.limit`."""
        return 0 if limit else min(self.least_warm_up, self.warm_up)


QUICK = Effort(warm_up=20, least_warm_up=0, messages=20, background=5, hops=1e9)
SURVEY = Effort(least_warm_up=0, messages=60, background=20, hops=2e10)
"""Effort for hundreds of simulations. With a `least_warm_up` of 50 in place of 0, a simulation would take four times as
long."""
FULL = Effort(precision=0.0, warm_up=50, least_warm_up=0, messages=1000, background=50, hops=1e13, steady=0.005)
"""Effort for final results. This effort detects steady states; `replace(FULL, steady=0.0)` simulates every message."""

EFFORTS: Mapping[str, Effort] = {"quick": QUICK, "survey": SURVEY, "full": FULL}


@dataclass(frozen=True, slots=True)
class Latency:
    """Statistics of the latencies of a job's messages, in ns.

    Attributes:
        messages: number of measured messages, after the warm-up.
        mean: mean latency over all messages.
        half: half width of the 95% confidence interval of `mean`; nan if there are too few messages.
        node_mean: mean over clients of each client's mean latency. In `mean`, a client's weight is its number of
            messages.
        deviation: standard deviation of the latencies.
        least, most: smallest and largest latency.
        quantiles: quantiles of the latencies at `QUANTILES`.
        left_out_ns: simulated time before the measurement, ns.
        measured_ns: simulated time of the measurement, ns.
        is_settled: True if `mean` is valid: it has the required precision, or all messages were measured.
        note: reason why the mean is not settled, or the rule that ended the measurement.
        change: relative change of `mean` over the measured time, if this change kept the mean from settling; else 0.
        histogram: for each non-empty bin of `bin_edges`: lower edge and upper edge in ns, number of messages.
        by_client: for each client with messages: index of its host, number of messages, mean latency.
        over_time: for each slice of time with messages: begin and end in ns, number of messages, mean latency.
        operations: for a collective, number of operations that began after the warm-up; 0 for other jobs.
        operation_mean: mean duration of these operations, from the start of the first message to the arrival of the
            last message.
        operation_half: half width of the 95% confidence interval of `operation_mean`; nan if there are too few
            operations.
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
ON_HOSTS = "all messages of the job stay on their hosts"


def describe(simulation: Simulation, samples: npt.NDArray[Any], begin: float, half: float) -> Latency:
    """Return the statistics of the messages in `samples`, which must not be empty. The caller sets `is_settled` and
    `note`."""
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
    """Return a latency as not settled, with a note that describes the cycle of waiting packets."""
    cycle = describe_deadlock(simulation.network, simulation.find_waits(only_stuck=True))
    return replace(latency, is_settled=False, note=f"deadlock: packets wait for each other in a cycle: {cycle}")


def note_all_sent(latency: Latency, effort: Effort, stay: bool) -> Latency:
    """Return the latency of a job that has sent all its messages, with new `note` and `is_settled`. `stay`: True if all
    messages after the warm-up stayed within hosts.
    """
    early = f"all messages were sent while clients of the other jobs had made fewer than {effort.background} requests"
    note = "all messages were sent" if latency.messages else ON_HOSTS if stay else early
    return replace(latency, is_settled=latency.messages > 0, note=note)


def list_limits(simulation: Simulation) -> npt.NDArray[np.uint64]:
    """Return the limit of each client's messages, uint64 [client]; `NO_END` without a limit."""
    return np.array([job.limit or NO_END for job in simulation.jobs], np.uint64)[simulation.job_of_client]


def find_first_chunk(simulation: Simulation) -> int:
    """Return the initial length of a piece of simulated time, ticks."""
    return max(simulation.network.ticks(_FIRST_CHUNK_NS), 1)


def leave_hosts(
    simulation: Simulation, clients: npt.NDArray[np.bool_], samples: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
    """Return bool [sample], True for messages of the given clients to other hosts."""
    client = samples["client"]
    chosen: npt.NDArray[np.bool_] = clients[client] & (samples["host"] != simulation.host_of_client[client])
    return chosen


class MeanOperation:
    """Collector of the durations of a collective's operations. For other jobs, the collector stays empty."""

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
        """Return the latency with the number and mean duration of those operations that began after the warm-up."""
        if not self._of:
            return latency
        ticks = np.concatenate(self._ticks)[np.concatenate(self._begin) * self._to_ns >= latency.left_out_ns]
        durations = ticks * self._to_ns
        mean = float(durations.mean()) if len(ticks) else math.nan
        half = half_interval(average_batches(durations, _LEAST))
        return replace(latency, operations=len(ticks), operation_mean=mean, operation_half=half)

    def are_enough(self, latency: Latency) -> bool:
        """Return True if there are enough operations, or if the job is no collective."""
        return not self._of or latency.operations >= _LEAST

    def is_narrow(self, latency: Latency, precision: float) -> bool:
        """Return True if the mean duration has the required precision, or if the job is no collective."""
        return not self._of or latency.operation_half <= precision * latency.operation_mean


BATCHES = 20
"""Largest number of batches of successive messages. The interval of the mean is computed from the batches' means."""

_TREND_PARTS = 10
"""Number of equal parts of the measured time. A line is fitted to the parts' mean latencies, which are nearly
independent: a part is much longer than a message."""

LEAST = 25
"""Average number of messages per client before the first test for a steady state."""

_GROWTH = 1.2
_MOST_CORRELATED = 0.9

Values = npt.NDArray[np.floating]

Slice = tuple[float, float, int, float]
"""A slice of time: begin and end in ns, number of messages completed in the slice, mean latency of these messages."""


def half_interval(means: npt.NDArray[np.float64]) -> float:
    """Return the half width of the 95% confidence interval of the mean of `means`; nan for fewer than two means."""
    from scipy.stats import t  # noqa: PLC0415  (slow to import)

    if len(means) < 2:
        return math.nan
    return float(t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / math.sqrt(len(means)))


def average_parts(values: Values, parts: int) -> npt.NDArray[np.float64]:
    """Divide a series into successive parts of nearly equal length; return the mean of each part."""
    return np.array([part.mean() for part in np.array_split(values, parts)])


def average_batches(values: Values, least: int) -> npt.NDArray[np.float64]:
    """Return the means of successive batches of a series; an empty array for fewer than `least` values."""
    batches = min(BATCHES, len(values) // 2) if len(values) >= least else 0
    return average_parts(values, batches) if batches else np.zeros(0)


def find_warm_up(values: npt.NDArray[np.float64]) -> int:
    """Return the number of first values to leave out as warm-up, at most half of the values. The method is MSER: the
    remaining values have the smallest standard error of the mean.

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
    """Linear change of a mean over the measured time.

    Attributes:
        change: change from begin to end, relative to the mean.
        half: half width of the 95% confidence interval of `change`; nan if there are too few messages.
    """

    change: float
    half: float

    def exceeds(self, part: float) -> bool:
        """Return True if the mean rises or falls by more than `part`, with 95% confidence."""
        return abs(self.change) - self.half > part


def find_drift(slices: Sequence[Slice]) -> Drift:
    """Fit a line to the means of `_TREND_PARTS` equal parts of the time, by least squares.

    Args:
        slices: slices with messages, in order of time.
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
    """Test for a steady state, after which the remaining messages need not be simulated.

    In a steady state, the mean of the messages so far does not drift, and is near the mean of all messages. The
    interval of the difference between these two means is the interval from batch means, times the square root of the
    remaining fraction of messages (finite population correction). If batches are correlated, the interval is widened as
    for a first-order autoregressive process. By chance, any test can end the run too early. To make few tests, the
    number of messages between tests grows geometrically.

    Args:
        part: required half width of the 95% interval, relative to the mean; 0 for no test.
        clients: number of clients of the job.
        messages: number of messages per client that are measured if no test ends the run.

    Source: A. M. Law and J. S. Carson, "A sequential procedure for determining the length of a steady-state
    simulation", Operations Research 27(5), 1979; W. G. Cochran, "Sampling Techniques", Wiley, 1977, section 2.6; G. S.
    Fishman, "Principles of Discrete Event Simulation", Wiley, 1978, section 5.8.
    """

    def __init__(self, part: float, clients: int, messages: int) -> None:
        self._part = part
        self._due = LEAST * max(clients, 1)
        self._total = messages * max(clients, 1)

    def is_reached(self, values: Values) -> bool:
        """Return True if a test is due and finds a steady state of the latencies, given in order of completion."""
        if not self._part or len(values) < self._due:
            return False
        self._due = math.ceil(_GROWTH * len(values))
        mean, left = float(values.mean()), 1 - len(values) / self._total
        if left <= 0:
            return False
        half = find_half(values) * math.sqrt(left)
        # Assume that the drift continues. Its effect on the mean of all messages is multiplied by the ratio of
        # remaining to measured messages, if this ratio is below 1.
        change = abs(find_change(values)) * min(left / (1 - left), 1.0)
        return half <= self._part * mean and change <= 2 * self._part * mean


def find_half(values: Values) -> float:
    """Return the half width of the 95% interval of a series' mean, from `BATCHES` batches that may be correlated."""
    means = average_parts(values, BATCHES)
    off = means - means.mean()
    variance = float((off**2).mean())
    lag = float((off[1:] * off[:-1]).mean()) / variance if variance else 0.0
    lag = min(max(lag, 0.0), _MOST_CORRELATED)
    return half_interval(means) * math.sqrt((1 + lag) / (1 - lag))


def find_change(values: Values) -> float:
    """Return the change of a series from begin to end, by a line fitted to the means of `_TREND_PARTS` parts."""
    return float(np.polyfit(np.arange(_TREND_PARTS), average_parts(values, _TREND_PARTS), 1)[0]) * _TREND_PARTS


class Figure(NamedTuple):
    """A mean, and the half width of its 95% confidence interval in the same unit."""

    mean: float
    half: float

    @property
    def relative_half(self) -> float:
        """Half width relative to the mean; 0 for a mean of 0."""
        return self.half / self.mean if self.mean else 0.0


BySeed = Mapping[int, Figure]
"""Random seed -> result of the simulation with this seed."""


def average(figures: BySeed) -> Figure | None:
    """Return the mean over seeds with Student's t interval; the figure itself for a single seed; None without seeds."""
    values = list(figures.values())
    if len(values) < 2:
        return values[0] if values else None
    means = np.array([each.mean for each in values])
    return Figure(float(means.mean()), half_interval(means))


def compare(figures: BySeed, others: BySeed) -> BySeed:
    """Return seed -> mean in `figures` divided by the mean in `others`, for seeds in both mappings."""
    ratios = {}
    for seed, figure in figures.items():
        other = others.get(seed)
        if other and other.mean:
            ratio = figure.mean / other.mean
            ratios[seed] = Figure(ratio, ratio * math.hypot(figure.relative_half, other.relative_half))
    return ratios
