# SPDX-License-Identifier: Apache-2.0
"""Common parts of all measurements of a simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.engine.packet_engine import Simulation
from ibprof_lab.simulation.measure.collective_operations import Operations
from ibprof_lab.simulation.measure.message_latency import Latency, half_interval

BATCHES = 20
"""Batches in time; their means give the interval of a mean."""

CHUNKS = 40
"""Parts in which simulated time is extended at first."""

NO_END = 1 << 62
"""Messages of a client without a limit."""

_FIRST_CHUNK_NS = 50e3

_LEAST = 10
"""Operations of a collective that are measured at least: tens of messages of a rank can be less than one."""


def list_limits(simulation: Simulation) -> npt.NDArray[np.uint64]:
    """Return the total number of messages of each client."""
    return np.array([job.limit or NO_END for job in simulation.jobs], np.uint64)[simulation.job_of_client]


def find_first_chunk(simulation: Simulation) -> int:
    """Return for how many ticks a simulation goes on at a time at first."""
    return max(simulation.network.ticks(_FIRST_CHUNK_NS), 1)


def leave_hosts(
    simulation: Simulation, clients: npt.NDArray[np.bool_], samples: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
    """Return which messages are of some clients and leave their hosts."""
    client = samples["client"]
    chosen: npt.NDArray[np.bool_] = clients[client] & (samples["host"] != simulation.host_of_client[client])
    return chosen


def average_batches(values: npt.NDArray[np.floating], least: int) -> npt.NDArray[np.float64]:
    """Return the means of batches in time, of values that depend on each other; none of fewer values than `least`."""
    batches = min(BATCHES, len(values) // 2) if len(values) >= least else 0
    return np.array([part.mean() for part in np.array_split(values, batches)] if batches else [])


class MeanOperation:
    """The durations of a collective's operations; nothing for other jobs."""

    def __init__(self, simulation: Simulation, clients: npt.NDArray[np.bool_]) -> None:
        job = int(simulation.job_of_client[clients][0])
        self._of = Operations(simulation, job) if simulation.is_collective[job] else None
        self._to_ns = simulation.network.to_ns(1)
        self._begin: list[npt.NDArray[np.int64]] = []
        self._ticks: list[npt.NDArray[np.int64]] = []

    def note(self, samples: npt.NDArray[Any]) -> None:
        """Take note of the next messages."""
        if self._of:
            begin, ticks = self._of.note(samples)
            self._begin.append(begin)
            self._ticks.append(ticks)

    def add_to(self, latency: Latency) -> Latency:
        """Add those that began after the warm-up."""
        if not self._of:
            return latency
        ticks = np.concatenate(self._ticks)[np.concatenate(self._begin) * self._to_ns >= latency.left_out_ns]
        durations = ticks * self._to_ns
        mean = float(durations.mean()) if len(ticks) else math.nan
        half = half_interval(average_batches(durations, _LEAST))
        return replace(latency, operations=len(ticks), operation_mean=mean, operation_half=half)

    def are_enough(self, latency: Latency) -> bool:
        """Return whether there are as many operations as it takes; of jobs without any, there are."""
        return not self._of or latency.operations >= _LEAST

    def is_narrow(self, latency: Latency, precision: float) -> bool:
        """Return whether the interval of their mean is; of jobs without any, it is."""
        return not self._of or latency.operation_half <= precision * latency.operation_mean
