# SPDX-License-Identifier: Apache-2.0
"""The I/O-congestion threshold: the interval between requests below which a job's own requests hold each other up.

A client waits for its request, then for its interval: its cycle is I + T(I). With long intervals T is the time of a
request alone, T0; without any it is C, what the servers' links and the ways to them need for a request of every client.
Where I + T(I) has come near C the job gets nearly all the throughput that there is: a shorter interval only lengthens T
by as much. The asymptotes T0 and C - I cross at C - T0; with C from the servers' links alone that is N S/(n B) - S/B.

Source: P. J. Denning and J. P. Buzen, "The operational analysis of queueing network models", ACM Computing Surveys
10(3), 1978; the name is that of section 5.4.1 of the thesis on whose method ibprof stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ibprof.errors import InconsistentError
from ibprof_converter.simulation.cell import Cell, Outcome, Setting
from ibprof_converter.simulation.cost import find_bottleneck_ns, find_bound_ns, find_transfer_ns
from ibprof_converter.simulation.roles import Workload

CONGESTED = 2.0
"""Requests without a pause must take so many times as long as one alone, or there is no congestion to speak of."""

NEAR = 0.9
"""Part of the throughput without a pause from which on the job counts as congested."""

_LONG = 100
"""Bottlenecks, or times of a request, that requests are apart to be alone: the servers' links are busy for 1 % then."""

_POINTS = 4
"""Intervals that are tried at once."""
_ROUNDS = 2

Simulate = Callable[[Sequence[Cell]], dict[str, Outcome]]


@dataclass(frozen=True, slots=True)
class Threshold:
    """What was found. Times in ns.

    Attributes:
        alone_ns: time of a request with nothing in its way (T0), measured at long intervals.
        without_pause_ns: time of a request at no interval (C).
        below_ns, above_ns: the threshold lies between these intervals; None where there is none.
        bound_ns: where it would lie by the servers' links alone, N S/(n B) - S/B; 0 or less: they are no bottleneck.
        tried: intervals and the times of requests at them, by interval; None where they have no settled mean.
    """

    alone_ns: float
    without_pause_ns: float
    below_ns: float | None
    above_ns: float | None
    bound_ns: float
    tried: tuple[tuple[float, float | None], ...]

    @property
    def crossing_ns(self) -> float:
        """The interval at which the asymptotes cross, C - T0: a threshold that is no bend but a corner."""
        return self.without_pause_ns - self.alone_ns


def find_threshold(setting: Setting, job: Workload, seeds: Sequence[int], simulate: Simulate) -> Threshold:
    """Find the threshold of a job that has its share of the machine for itself.

    Args:
        setting: the machine.
        job: its interval is not looked at.
        seeds: of the simulations; times are means over them.
        simulate: runs cells.

    Raises:
        InconsistentError: a mean that is needed did not settle.
    """
    tried: dict[float, float | None] = {}
    notes: dict[float, str] = {}

    def measure(intervals: Sequence[float]) -> None:
        cells = {each: [_cell(setting, job, each, seed) for seed in seeds] for each in intervals if each not in tried}
        outcomes = simulate([cell for several in cells.values() for cell in several])
        for interval, several in cells.items():
            latencies = [outcomes[cell.key].latency for cell in several]
            settled = all(latency.is_settled for latency in latencies)
            tried[interval] = fmean(latency.mean for latency in latencies) if settled else None
            notes[interval] = next((latency.note for latency in latencies if not latency.is_settled), "")

    def need(interval: float) -> float:
        mean = tried[interval]
        if mean is None:
            raise InconsistentError(f"requests {interval / 1e3:g} us apart have no settled mean: {notes[interval]}")
        return mean

    sample = _cell(setting, job, 0.0, seeds[0])
    transfer, bottleneck = find_transfer_ns(sample, job), find_bottleneck_ns(sample, job)
    long = round(_LONG * max(transfer, bottleneck))
    measure([0.0, long])
    alone, cycle = need(long), need(0.0)
    below = above = None
    if cycle >= CONGESTED * alone:
        below, above = 0.0, 1.25 * cycle  # at which the throughput is at most 0.8 of the most
        for _ in range(_ROUNDS):
            step = (above - below) / (_POINTS + 1)
            points = [float(round(below + step * (number + 1))) for number in range(_POINTS)]
            measure(points)
            known = [(point, mean) for point in points if (mean := tried[point]) is not None]
            congested = [point for point, mean in known if cycle >= NEAR * (point + mean)]
            below = max(congested, default=below)
            above = min((point for point, _ in known if point > below), default=above)
    return Threshold(alone, cycle, below, above, find_bound_ns(sample, job), tuple(sorted(tried.items())))


def _cell(setting: Setting, job: Workload, interval: float, seed: int) -> Cell:
    return Cell(setting, (replace(job, interval_ns=interval),), (job.name,), job.name, seed)
