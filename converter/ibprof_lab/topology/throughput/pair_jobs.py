# SPDX-License-Identifier: Apache-2.0
"""Jobs (sets of host pairs that are measured together), rounds of jobs, and their measurement on all processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, UsageError
from ibprof.text.quantities import count_of, printable
from ibprof_lab.latency.measure.concurrent_loops import ConcurrentStreams, StreamSettings
from ibprof_lab.latency.measure.mpi_job import ProgressMeter, RoundBarrier, on_first, show_seconds
from ibprof_lab.latency.model.delays import name_processes
from ibprof_lab.topology.model.inferred_topology import InferredRoutes, InferredTopology
from ibprof_lab.topology.model.topology_files import read_topology

Pair = tuple[int, int]

Rates = npt.NDArray[np.float64] | None
Found_co = TypeVar("Found_co", covariant=True)
_GBPS = 8e-9
"""Factor from bytes per second to Gb/s."""

_ROUND_OVERHEAD = 1.5
"""Duration of a round's measurement / duration of its timed part."""


@dataclass(frozen=True, slots=True)
class PairJob:
    """A job: pairs of hosts that send at the same time.

    Attributes:
        pairs: indices of the two hosts of each pair; no host is in two pairs.
        links: indices of the topology's edges on each pair's path.
        alone: further resources that no other job of the round may use, such as a narrow switch.
    """

    pairs: tuple[Pair, ...]
    links: tuple[frozenset[int], ...]
    alone: frozenset[str] = frozenset()

    @property
    def touched(self) -> frozenset[object]:
        """All resources that no other job of the same round may use: links, hosts, and `alone`."""
        hosts = (f"host {host}" for pair in self.pairs for host in pair)
        return frozenset().union(*self.links, hosts, self.alone)


def make_job(routes: InferredRoutes, pairs: Iterable[Pair], alone: Iterable[str] = ()) -> PairJob:
    """Return a job with the links on its pairs' paths."""
    chosen = tuple(pairs)
    return PairJob(chosen, tuple(routes.links(*pair) for pair in chosen), frozenset(alone))


def put_into_rounds(jobs: Sequence[PairJob]) -> list[list[PairJob]]:
    """Put each job, the largest first, into the first round in which no other job uses the job's resources.

    Source: Bufe (see `published_methods`), section 2.3.3, the greedy scheme.
    """
    rounds: list[list[PairJob]] = []
    taken: list[set[object]] = []
    for job in sorted(jobs, key=lambda each: -len(each.touched)):
        touched = job.touched
        place = next((row for row, there in enumerate(taken) if touched.isdisjoint(there)), len(rounds))
        if place == len(rounds):
            rounds.append([])
            taken.append(set())
        rounds[place].append(job)
        taken[place] |= touched
    return rounds


@dataclass(frozen=True, slots=True)
class PairJobResult:
    """The result of a job.

    Attributes:
        job: the measured job.
        gbps: float64 [pair], rates, Gb/s, in the direction with the smaller total rate.
    """

    job: PairJob
    gbps: npt.NDArray[np.float64]

    @property
    def total(self) -> float:
        """Sum of the rates of all pairs, Gb/s."""
        return float(self.gbps.sum())


class RoundsPlan(Protocol[Found_co]):
    """Plan of a measurement: all its rounds."""

    @property
    def rounds(self) -> int:
        """Approximate number of rounds."""

    def run(self, measure: RoundMeasurement, advance: Callable[[], None]) -> Found_co:
        """Measure the rounds, until all are measured or all processes stop. Call `advance` after each round."""


class RoundMeasurement:
    """Measurement of rounds of jobs, for rank 0; the other ranks call `follow_measurement`. `ranks`: for each host, the
    rank that sends and receives. Each round is measured `repetitions` times. A job's highest total rate is used, since
    other traffic only reduces rates.
    """

    def __init__(self, streams: ConcurrentStreams, ranks: Sequence[int], repetitions: int) -> None:
        self._streams, self._ranks, self._repetitions = streams, ranks, repetitions

    @property
    def stopped(self) -> bool:
        """True after all processes agreed to stop."""
        return self._streams.stopped

    def measure(self, jobs: Sequence[PairJob]) -> dict[PairJob, PairJobResult]:
        """Measure jobs at the same time: first in one direction, then in the other."""
        pairs = [(self._ranks[one], self._ranks[other]) for job in jobs for one, other in job.pairs]
        directions = _send_both_directions(self._streams, self._streams.comm.bcast((pairs, self._repetitions)))
        results, begin = {}, 0
        for job in jobs:
            own = slice(begin, begin + len(job.pairs))
            begin = own.stop
            of_directions = []
            for attempts in directions:
                rates = [attempt[own] for attempt in attempts if attempt is not None]
                of_directions.append(max(rates, key=lambda each: float(each.sum())))
            slower = min(of_directions, key=lambda each: float(each.sum()))
            results[job] = PairJobResult(job, np.asarray(slower) * _GBPS)
        return results

    def end(self) -> None:
        """Release the other processes."""
        self._streams.comm.bcast(None)


def measure_on_all(
    module: Any,
    topology: Path,
    streams: StreamSettings,
    repetitions: int,
    dry_run: bool,
    make_plan: Callable[[InferredTopology], RoundsPlan[Found_co]],
    finish: Callable[[InferredTopology, Found_co], None],
) -> int:
    """Plan and measure; every process calls this function.

    Args:
        module: `mpi4py.MPI`.
        topology: file of the topology. This and the following arguments are the same on all processes.
        streams: parameters of the streams.
        repetitions: number of measurements of each round.
        dry_run: True to only print the number of rounds.
        make_plan: function, called on rank 0, that returns the plan for a topology.
        finish: function, called on rank 0 with the topology and the result; an error in it ends all processes.

    Returns:
        The number of the signal that ended the measurement; 0 if there is none.

    Raises:
        UsageError: the topology is directed, or a plan cannot be made.
        InconsistentError: a host of the topology has no process.
        InputError: the topology cannot be read.
    """
    comm = module.COMM_WORLD.Dup()
    processors = comm.allgather(module.Get_processor_name())

    def prepare() -> tuple[InferredTopology, list[int], RoundsPlan[Found_co]]:
        graph = read_topology(topology)
        if graph.directed:
            raise UsageError(f"{topology}: arcs of one direction define no route; infer by another method")
        return graph, find_ranks(graph.hosts, processors, str(topology)), make_plan(graph)

    prepared = on_first(comm, prepare)
    barrier = RoundBarrier(comm)
    meter = ProgressMeter(lambda line: print(f"ibprof-topology: {line}", file=sys.stderr, flush=True))
    if prepared:
        rounds = prepared[2].rounds
        seconds = rounds * 2 * repetitions * _ROUND_OVERHEAD * streams.seconds
        meter.say(
            f"{count_of(len(prepared[1]), 'host')}, {count_of(rounds, 'round')} of measurements; "
            f"about {show_seconds(seconds)}"
        )
    if dry_run:
        return 0
    sender = ConcurrentStreams(comm, barrier, streams)
    found: list[tuple[InferredTopology, Found_co]] = []
    with barrier:
        if prepared:
            graph, ranks, plan = prepared
            measurement = RoundMeasurement(sender, ranks, repetitions)
            meter.start("measuring", plan.rounds)
            found.append((graph, plan.run(measurement, lambda: meter.advance(1))))
            measurement.end()
            meter.stop()
        else:
            follow_measurement(sender)
    on_first(comm, lambda: finish(*found[0]))
    return int(comm.allreduce(barrier.signal, module.MAX))


def find_ranks(hosts: Sequence[str], processors: Sequence[str], path: str) -> list[int]:
    """Return for each host the rank that sends and receives: the lowest rank on the host. `processors`: host name of
    each rank.

    A topology of processes within one host has names such as `host#0`. `path`: file of the topology, for messages.

    Raises:
        InconsistentError: a host has no rank.
    """
    first: dict[str, int] = {}
    for rank, (name, label) in enumerate(zip(processors, name_processes(processors), strict=True)):
        first.setdefault(name, rank)
        first.setdefault(label, rank)
    missing = [host for host in hosts if host not in first]
    if missing:
        shown = ", ".join(missing[:5]) + (" and more" if len(missing) > 5 else "")
        raise InconsistentError(
            f"{path}: expected a process on each of its {len(hosts)} hosts, found none on {printable(shown)}"
        )
    return [first[host] for host in hosts]


def follow_measurement(streams: ConcurrentStreams) -> None:
    """Do this rank's part of the measurements that rank 0 planned; called on all other ranks."""
    while (todo := streams.comm.bcast(None)) is not None:
        _send_both_directions(streams, todo)


def _send_both_directions(streams: ConcurrentStreams, todo: tuple[list[Pair], int]) -> tuple[list[Rates], list[Rates]]:
    """Let pairs of ranks send in one direction, then in the other, `repetitions` times; return the rates on rank 0."""
    pairs, repetitions = todo
    there, back = [], []
    for _ in range(repetitions):
        there.append(streams.measure(pairs))
        back.append(streams.measure([(other, one) for one, other in pairs]))
    return there, back
