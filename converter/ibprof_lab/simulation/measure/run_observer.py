# SPDX-License-Identifier: Apache-2.0
"""Observations of a running simulation: latencies by job, client and time; collective operations; queues over time.

The memory for the observations does not grow with the length of the run. Messages within a host are included in the
flows, but not in latencies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.engine.packet_engine import Simulation, Stop

BINS_AN_OCTAVE = 64
"""Number of histogram bins between a value and its double. A bin's width is at most 1/64 of its lower edge."""

_OCTAVES = 80
_MOMENTS = 256
"""Largest number of time slices, and of observations of queues. At this limit, pairs of neighbouring slices are merged,
and every second observation is dropped.
"""

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def bin_values(values: Floats) -> Counts:
    """Return the number of values in each bin of `bin_edges`, int64 [bin]; values below 0.5 count as 0.5."""
    mantissa, exponent = np.frexp(np.maximum(values, 0.5))
    bins = exponent.astype(np.int64) * BINS_AN_OCTAVE + ((mantissa - 0.5) * 2 * BINS_AN_OCTAVE).astype(np.int64)
    return np.bincount(np.minimum(bins, _OCTAVES * BINS_AN_OCTAVE - 1), minlength=_OCTAVES * BINS_AN_OCTAVE)


def bin_edges() -> Floats:
    """Return the lower edges of all bins, and the upper edge of the last bin, float64 [bin + 1]."""
    octave, part = np.divmod(np.arange(_OCTAVES * BINS_AN_OCTAVE + 1), BINS_AN_OCTAVE)
    edges: Floats = np.ldexp(0.5 + part / (2 * BINS_AN_OCTAVE), octave)
    return edges


def list_bins(counts: Counts) -> tuple[tuple[float, float, int], ...]:
    """Return the non-empty bins: lower edge, upper edge, count."""
    edges = bin_edges()
    return tuple((float(edges[i]), float(edges[i + 1]), int(counts[i])) for i in np.flatnonzero(counts))


@dataclass(frozen=True, slots=True)
class OverTime:
    """Messages of a job by time of completion; all arrays are [slice].

    Attributes:
        begin_ns: begin of each slice of time; the slices are consecutive.
        width_ns: width of each slice.
        messages: int64, number of messages completed in each slice.
        mean_ns: mean latency of these messages; nan without messages.
    """

    begin_ns: Floats
    width_ns: float
    messages: Counts
    mean_ns: Floats


@dataclass(frozen=True, slots=True)
class Flows:
    """Messages between clients and hosts; all arrays are [pair of a client and a host].

    Attributes:
        client, host: int64, indices of the client and of the host.
        messages: int64, number of completed messages.
        bytes: uint64, bytes of these messages on links; an empty message counts as one byte.
    """

    client: Counts
    host: Counts
    messages: Counts
    bytes: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Queues:
    """Repeated observations of the queues of all link directions.

    Attributes:
        time_ns: float64 [observation], simulated time.
        bytes: uint32 [observation, link direction], bytes in the queue or waiting for it (`Ends.queued`).
    """

    time_ns: Floats
    bytes: npt.NDArray[np.uint32]


@dataclass(slots=True)
class _Open:
    """An operation whose messages have not all arrived."""

    missing: int
    begin: int
    end: int = 0


def count_turns(client: Counts, done: Counts) -> Counts:
    """Return for each message the number of earlier messages of its client, int64 [message].

    Args:
        client: int64 [message], index of the client of each message, in order of completion.
        done: int64 [client], number of each client's messages in earlier calls; this call increases it.
    """
    order = np.argsort(client, kind="stable")
    which, first, count = np.unique(client[order], return_index=True, return_counts=True)
    turn = np.empty(len(client), np.int64)
    turn[order] = np.arange(len(client)) - np.repeat(first, count) + np.repeat(done[which], count)
    done[which] += count
    return turn


class Operations:
    """Groups messages of a collective by operation, during a simulation.

    Only unfinished operations are stored.

    Args:
        simulation: simulation that has not run yet.
        job: index of the job, whose messages must all be sampled.
    """

    def __init__(self, simulation: Simulation, job: int) -> None:
        self._clients = simulation.job_of_client == job
        self._steps = simulation.steps_of_client
        self._messages = int(self._steps[self._clients].sum())
        self._done = np.zeros(simulation.clients, np.int64)
        self._open: dict[int, _Open] = {}

    def note(self, samples: npt.NDArray[Any]) -> tuple[Counts, Counts]:
        """Record the next messages.

        Args:
            samples: the next messages, in order of completion; messages of other jobs are ignored.

        Returns:
            Start and duration, in ticks, of each operation that these messages complete: two arrays, int64 [operation].
        """
        samples = samples[self._clients[samples["client"]]]
        if not len(samples):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        client = samples["client"].astype(np.int64)
        turn = count_turns(client, self._done)
        number = turn // self._steps[client]
        start = samples["start"].astype(np.int64)
        end = start + samples["ticks"].astype(np.int64)
        ended = [each for each in np.unique(number).tolist() if self._add(each, start, end, number == each)]
        closed = [self._open.pop(each) for each in ended]
        begin = np.array([each.begin for each in closed], np.int64)
        return begin, np.array([each.end for each in closed], np.int64) - begin

    def _add(self, number: int, start: Counts, end: Counts, chosen: npt.NDArray[np.bool_]) -> bool:
        """Add the chosen messages to an operation; return True if the messages complete the operation."""
        begin = int(start[chosen].min())
        found = self._open.setdefault(number, _Open(self._messages, begin))
        found.missing -= int(chosen.sum())
        found.begin, found.end = min(found.begin, begin), max(found.end, int(end[chosen].max()))
        return not found.missing


class Watch:
    """Observer that runs a simulation and records its messages and queues. The observer has no effect on the results.

    Args:
        simulation: simulation that has not run yet.
        every_ns: initial time between observations of queues, and initial width of a time slice. This time doubles
            whenever there are `_MOMENTS` observations, or a message ends after the last of `_MOMENTS` slices.
    """

    def __init__(self, simulation: Simulation, every_ns: float = 1000.0) -> None:
        jobs = len(simulation.jobs)
        self.simulation = simulation
        self._width = max(simulation.network.ticks(every_ns), 1)
        self._histogram = np.zeros((jobs, _OCTAVES * BINS_AN_OCTAVE), np.int64)
        self._slice_sum, self._slice_count = np.zeros((jobs, _MOMENTS)), np.zeros((jobs, _MOMENTS), np.int64)
        self._client_sum = np.zeros(simulation.clients)
        self._client_count = np.zeros(simulation.clients, np.int64)
        self._flow, self._flow_messages = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._flow_bytes = np.zeros(0, np.uint64)
        self._looks: list[npt.NDArray[np.uint32]] = []
        collectives = np.flatnonzero(simulation.is_collective).tolist()
        self._operations = {job: Operations(simulation, job) for job in collectives}
        self._durations = {job: bin_values(np.zeros(0)) for job in collectives}

    def run(self, until: int, hops: float = math.inf) -> npt.NDArray[Any]:
        """Continue like `Simulation.run`, and return all samples."""
        simulation = self.simulation
        taken = []
        while True:
            due = (len(self._looks) + 1) * self._width
            taken.append(simulation.run(min(until, due), hops).copy())
            self._note(taken[-1])
            state = simulation.state
            if state.stop == Stop.TIME and state.now >= due:
                self._looks.append(simulation.look_at_ends().queued.astype(np.uint32))
                if len(self._looks) == _MOMENTS:
                    self._merge()
            if state.stop != Stop.TIME or state.now >= until:
                return np.concatenate(taken)

    def histogram(self, job: int) -> Counts:
        """Return a histogram of the latencies of a job's messages in ns, int64 [bin], with the bins of `bin_edges`."""
        counts: Counts = self._histogram[job]
        return counts

    def operations(self, job: int) -> Counts | None:
        """Return a histogram of the durations of a collective's operations in ns, int64 [bin]; None for other jobs."""
        return self._durations.get(job)

    def over_time(self, job: int) -> OverTime:
        """Return the latencies of a job over time."""
        width = self.simulation.network.to_ns(self._width)
        count = self._slice_count[job]
        slices = int(np.flatnonzero(self._slice_count.any(axis=0)).max(initial=-1)) + 1
        mean = np.divide(self._slice_sum[job], count, out=np.full(_MOMENTS, math.nan), where=count > 0)
        begin: Floats = np.arange(slices, dtype=float) * width
        return OverTime(begin, width, count[:slices], mean[:slices])

    def by_client(self) -> tuple[Counts, Floats]:
        """Return each client's number of messages to other hosts, and their mean latency in ns (nan without
        messages)."""
        none = np.full(len(self._client_sum), math.nan)
        return self._client_count, np.divide(
            self._client_sum, self._client_count, out=none, where=self._client_count > 0
        )

    def flows(self) -> Flows:
        """Return the number and the bytes of completed messages between clients and hosts."""
        client, host = np.divmod(self._flow, self.simulation.network.hosts)
        return Flows(client, host, self._flow_messages, self._flow_bytes)

    def queues(self) -> Queues:
        """Return the observations of the queues."""
        width = self.simulation.network.to_ns(self._width)
        ends = len(self.simulation.network.end_to)
        looks = np.array(self._looks, np.uint32).reshape(-1, ends)
        time: Floats = np.arange(1, len(looks) + 1, dtype=float) * width
        return Queues(time, looks)

    def _note(self, samples: npt.NDArray[Any]) -> None:
        if not len(samples):
            return
        client = samples["client"]
        self._add_flows(
            client.astype(np.int64) * self.simulation.network.hosts + samples["host"], np.maximum(samples["bytes"], 1)
        )
        for number, operations in self._operations.items():
            _, ticks = operations.note(samples)
            self._durations[number] += bin_values(ticks.astype(float) * self.simulation.network.to_ns(1))
        self._note_latencies(samples[samples["host"] != self.simulation.host_of_client[client]])

    def _note_latencies(self, samples: npt.NDArray[Any]) -> None:
        if not len(samples):
            return
        client = samples["client"]
        job = self.simulation.job_of_client[client]
        ns = samples["ticks"] * self.simulation.network.to_ns(1)
        for number in np.unique(job):
            self._histogram[number] += bin_values(ns[job == number])
        self._client_sum += np.bincount(client, ns, len(self._client_sum))
        self._client_count += np.bincount(client, minlength=len(self._client_count))
        end = (samples["start"] + samples["ticks"]).astype(np.int64)
        while int(end[-1]) >= self._width * _MOMENTS:
            self._merge()
        at = end // self._width
        np.add.at(self._slice_sum, (job, at), ns)
        np.add.at(self._slice_count, (job, at), 1)

    def _add_flows(self, flow: npt.NDArray[np.int64], size: npt.NDArray[np.uint64]) -> None:
        known = len(self._flow)
        self._flow, place = np.unique(np.concatenate([self._flow, flow]), return_inverse=True)
        messages, total = np.zeros(len(self._flow), np.int64), np.zeros(len(self._flow), np.uint64)
        messages[place[:known]], total[place[:known]] = self._flow_messages, self._flow_bytes
        np.add.at(messages, place[known:], 1)
        np.add.at(total, place[known:], size)
        self._flow_messages, self._flow_bytes = messages, total

    def _merge(self) -> None:
        for array in (self._slice_sum, self._slice_count):
            array[:, : _MOMENTS // 2] = array[:, ::2] + array[:, 1::2]
            array[:, _MOMENTS // 2 :] = 0
        self._looks = self._looks[1::2]
        self._width *= 2
