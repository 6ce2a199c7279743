# SPDX-License-Identifier: Apache-2.0
"""How long to simulate, what to leave out, and how sure a mean is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_converter.simulation.deadlock import describe_deadlock
from ibprof_converter.simulation.engine import Simulation, Stop
from ibprof_converter.simulation.operations import Operations
from ibprof_converter.simulation.stationary import Slice, find_drift, find_warm_up
from ibprof_converter.simulation.watch import Watch, bin_values, list_bins

_BATCHES = 20
_SLICES = 40
"""Of the measured time, for means over time."""

_CHUNKS = 40
"""Parts in which simulated time is extended at first."""

_OPERATIONS = 10
"""Of a collective that are measured at least: tens of messages of a rank can be less than one."""

_NO_END = 1 << 62
"""Messages of a client without a limit."""

QUANTILES = (0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Effort:
    """When a measurement is good enough.

    Attributes:
        precision: half of the 95 % confidence interval, as a part of the mean; 0: `warm_up` and `messages` are taken
            as they are.
        warm_up: messages of a client that are left out at most; fewer, where the mean is stationary before.
        least_warm_up: messages of a client, on average, that are left out however stationary the mean looks, up to
            `warm_up`; none of jobs that end. Clients that go from server to server sort themselves over tens of
            messages, too slowly for a test to see it in a few.
        messages: of a client, after which it ends whatever the interval is.
        background: requests of each client of other jobs that must have passed before anything is measured.
        hops: packet hops after which it is given up.
    """

    precision: float = 0.05
    warm_up: int = 50
    least_warm_up: int = 50
    messages: int = 200
    background: int = 50
    hops: float = 1e10

    def left_out(self, limit: int) -> int:
        """Give how many messages of a client are left out in any case; the limit of a job without an end is 0."""
        return 0 if limit else min(self.least_warm_up, self.warm_up)


@dataclass(frozen=True, slots=True)
class Latency:
    """What the messages of a job took, in ns.

    Attributes:
        messages: that were measured, after the warm-up.
        mean: over messages.
        half: of its 95 % confidence interval, by batch means over time; nan where there are too few batches.
        node_mean: mean of the clients' own means, which does not over-sample quiet times.
        deviation: standard deviation.
        least, most: extremes.
        quantiles: of `QUANTILES`.
        left_out_ns: simulated time before the measurement began.
        measured_ns: simulated time of the measurement.
        is_settled: whether it fulfils what was asked of it.
        note: why not, or which rule ended it.
        histogram: lower edge, upper edge in ns, messages, of each bin of `watch.bin_edges` that has any.
        by_client: host by number, messages and their mean, of each client that had any.
        over_time: begin and end in ns, messages and their mean, of equal slices of the measured time.
        operations: of a collective, that began after the warm-up; 0 for other jobs.
        operation_mean: of their durations, from the first message's start to the last one's arrival.
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
    histogram: tuple[tuple[float, float, int], ...] = ()
    by_client: tuple[tuple[int, int, float], ...] = ()
    over_time: tuple[Slice, ...] = ()
    operations: int = 0
    operation_mean: float = math.nan


NOTHING = Latency(0, *(math.nan,) * 6, (math.nan,) * len(QUANTILES), 0.0, 0.0, False, "no message was measured")


def measure(
    simulation: Simulation,
    clients: npt.NDArray[np.bool_],
    effort: Effort,
    watch: Watch | None = None,
    whole: bool = False,
) -> Latency:
    """Run a simulation until what the clients of one job see is known well enough.

    Args:
        simulation: that has not run yet.
        clients: bool [client], which are those of the job that is measured; its steps are sampled.
        effort: what is wanted.
        watch: of the simulation, where it is to keep what happens to all jobs.
        whole: all messages of each client are taken, also where the mean looks settled before: for what changes slowly.
    """
    run = watch.run if watch else simulation.run
    taken: list[npt.NDArray[Any]] = []
    limit = np.array([job.limit or _NO_END for job in simulation.jobs], np.uint64)[simulation.job_of_client]
    left_out = effort.left_out(simulation.jobs[int(simulation.job_of_client[clients][0])].limit)
    looked_at = effort.warm_up - left_out
    passed = np.where(clients, 0, np.minimum(limit, effort.background))
    begun, first, begin = not (left_out or passed.any()), np.zeros(len(clients), np.uint64), 0.0
    chunk = max(simulation.network.ticks(50e3), 1)
    operations = _Operations(simulation, clients)
    while True:
        samples = run(simulation.state.now + chunk)
        operations.note(samples)
        state = simulation.state
        steps = simulation.look_at_clients().steps
        if begun:
            taken.append(samples[clients[samples["client"]]])
        else:
            begun = bool((steps >= passed).all() and steps[clients].mean() >= left_out)
            first, begin = steps, simulation.network.to_ns(state.now)
        enough = begun and not whole and sum(len(each) for each in taken) >= 4 * clients.sum()
        ended = state.stop in {Stop.DONE, Stop.DEADLOCK}
        wanted = np.minimum(limit, first + looked_at + effort.messages)
        all_of = begun and bool((steps >= wanted)[clients].all())
        if enough or all_of or ended or state.packet_hops > effort.hops:
            samples = np.concatenate(taken) if taken else samples[:0]
            latency = operations.add_to(
                _summarise(simulation, samples, int(clients.sum()), effort.precision, looked_at, begin)
            )
            settled = ((latency.is_settled and not whole) or all_of) and latency.operations >= operations.needed
            if ended or settled or state.packet_hops > effort.hops:
                return _judge(latency, simulation, all_of, effort)
        if state.stop == Stop.TIME and state.now > _CHUNKS * chunk:
            chunk *= 2


class _Operations:
    """The durations of a collective's operations; nothing for other jobs."""

    def __init__(self, simulation: Simulation, clients: npt.NDArray[np.bool_]) -> None:
        job = int(simulation.job_of_client[clients][0])
        self._of = Operations(simulation, job) if simulation.is_collective[job] else None
        self._to_ns = simulation.network.to_ns(1)
        self._begin: list[npt.NDArray[np.int64]] = []
        self._ticks: list[npt.NDArray[np.int64]] = []
        self.needed = _OPERATIONS if self._of else 0

    def note(self, samples: npt.NDArray[Any]) -> None:
        if self._of:
            begin, ticks = self._of.note(samples)
            self._begin.append(begin)
            self._ticks.append(ticks)

    def add_to(self, latency: Latency) -> Latency:
        """Add those that began after the warm-up."""
        if not self._of:
            return latency
        ticks = np.concatenate(self._ticks)[np.concatenate(self._begin) * self._to_ns >= latency.left_out_ns]
        mean = float(ticks.mean() * self._to_ns) if len(ticks) else math.nan
        return replace(latency, operations=len(ticks), operation_mean=mean)


def _summarise(
    simulation: Simulation, samples: npt.NDArray[Any], clients: int, precision: float, looked_at: int, begin: float
) -> Latency:
    to_ns = simulation.network.to_ns(1)
    end = (samples["start"] + samples["ticks"]) * to_ns
    taken = samples["ticks"] * to_ns
    if not len(taken):
        return NOTHING
    # A message of each client makes a point of the series that is looked at for its warm-up.
    points = max(len(taken) // max(clients, 1), 1)
    series = np.array([part.mean() for part in np.array_split(taken, points)])
    cut = min(find_warm_up(series) if precision else points, looked_at)
    kept = slice(sum(len(part) for part in np.array_split(taken, points)[:cut]), None)
    values = taken[kept]
    if not len(values):
        return NOTHING
    begin = float(end[kept][0]) if cut else begin
    half = _half_interval(values)
    by_client = _average_by_client(simulation, samples["client"][kept], values)
    over_time = _average_over_time(end[kept], values, begin)
    mean = float(values.mean())
    return Latency(
        messages=len(values),
        mean=mean,
        half=half,
        node_mean=float(np.mean([each for _, _, each in by_client])),
        deviation=float(values.std()),
        least=float(values.min()),
        most=float(values.max()),
        quantiles=tuple(np.quantile(values, QUANTILES).tolist()),
        left_out_ns=begin,
        measured_ns=float(end[-1]) - begin,
        is_settled=points - cut >= 2 and half <= precision * mean and not find_drift(over_time).exceeds(precision),
        note="the interval is narrow enough",
        histogram=list_bins(bin_values(values)),
        by_client=by_client,
        over_time=over_time,
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


def _half_interval(values: npt.NDArray[np.float64]) -> float:
    """Half of the 95 % interval of a mean of values that depend on each other, by the means of batches in time."""
    from scipy.stats import t  # noqa: PLC0415  (slow to import)

    if len(values) < 2 * _BATCHES:
        return math.nan
    means = np.array([part.mean() for part in np.array_split(values, _BATCHES)])
    return float(t.ppf(0.975, _BATCHES - 1) * means.std(ddof=1) / math.sqrt(_BATCHES))


def _judge(latency: Latency, simulation: Simulation, all_of: bool, effort: Effort) -> Latency:
    if simulation.state.stop == Stop.DEADLOCK:
        circle = describe_deadlock(simulation.network, simulation.find_waits())
        return replace(latency, is_settled=False, note=f"deadlock: packets wait for each other in a circle: {circle}")
    if latency.is_settled:
        return latency
    if all_of and latency.messages:
        drift = find_drift(latency.over_time)
        if effort.precision and drift.exceeds(effort.precision):
            told = f"{100 * drift.change:+.0f} % ± {100 * drift.half:.0f} in the time that is measured"
            return replace(latency, is_settled=False, note=f"no steady state: the mean still changes, {told}")
        return replace(latency, is_settled=True, note=f"{effort.messages} messages of each client, or all of them")
    if all_of or simulation.state.stop == Stop.DONE:
        early = f"all messages were sent before the other jobs had made {effort.background} requests of each client"
        return replace(
            latency, is_settled=latency.messages > 0, note="all messages were sent" if latency.messages else early
        )
    return replace(latency, is_settled=False, note=f"given up after {effort.hops:g} packet hops")
