# SPDX-License-Identifier: Apache-2.0
"""Measurement of the throughput of a topology's links: all jobs, put into rounds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, UsageError
from ibprof.text.quantities import printable
from ibprof_converter.latency.measure.concurrent_streams import ConcurrentStreams, StreamSettings
from ibprof_converter.latency.measure.process_agreement import RoundBarrier, on_first
from ibprof_converter.latency.measure.progress_meter import ProgressMeter, show_seconds
from ibprof_converter.latency.model.delays import name_processes
from ibprof_converter.topology.files.topology_json import read_topology
from ibprof_converter.topology.model.inferred_routes import InferredRoutes
from ibprof_converter.topology.model.inferred_topology import InferredTopology, LinkThroughput
from ibprof_converter.topology.throughput.link_throughput import PairJobResult, find_throughput, is_wide_enough
from ibprof_converter.topology.throughput.pair_jobs import Pair, PairJob, put_into_rounds
from ibprof_converter.topology.throughput.throughput_plan import (
    pair_across_link,
    pair_hosts_of_switches,
    pair_neighbours,
    pair_through_switch,
    probe_switches,
)

Rates = npt.NDArray[np.float64] | None

_GBPS = 8e-9
"""Bytes per second -> Gb/s."""


_ROUND_OVERHEAD = 1.5
"""Time of a measurement over the time that is timed."""


@dataclass(frozen=True, slots=True)
class ThroughputOptions:
    """The topology, and how to measure it.

    Attributes:
        topology: file of the topology, JSON.
        streams: how pairs send.
        repetitions: of each measurement.
        pairs: largest number of pairs that send over a link at the same time; None for all.
        dry_run: whether only to estimate the time.
    """

    topology: Path
    streams: StreamSettings
    repetitions: int
    pairs: int | None
    dry_run: bool


def measure_throughput(module: Any, options: ThroughputOptions, finish: Callable[[InferredTopology], None]) -> int:
    """Measure the throughput of all links; called on every process.

    Args:
        module: `mpi4py.MPI`.
        options: the same on all processes.
        finish: takes the topology with its throughput, on the first process; an error of it ends all processes.

    Returns:
        The number of the signal that ended it; 0 for none.

    Raises:
        UsageError: the topology is directed.
        InconsistentError: a host of the topology has no process.
        InputError: the topology cannot be read.
    """
    comm = module.COMM_WORLD.Dup()
    processors = comm.allgather(module.Get_processor_name())
    planned = on_first(comm, lambda: _plan(options, processors))
    barrier = RoundBarrier(comm)
    meter = ProgressMeter(lambda line: print(f"ibprof-topology: {line}", file=sys.stderr, flush=True))
    rounds = planned.rounds if planned else 0
    if planned:
        seconds = rounds * 2 * options.repetitions * _ROUND_OVERHEAD * options.streams.seconds
        meter.say(f"{len(planned.ranks)} hosts, {rounds} rounds of measurements; about {show_seconds(seconds)}")
    if options.dry_run:
        return 0
    streams = ConcurrentStreams(comm, barrier, options.streams)
    found: list[InferredTopology] = []
    with barrier:
        if planned:
            meter.start("measuring", rounds)
            throughput = planned.run(streams, lambda: meter.advance(1))
            found.append(replace(planned.routes.topology, throughput=throughput))
            meter.stop()
        else:
            follow_measurement(streams)
    on_first(comm, lambda: finish(found[0]))
    return int(comm.allreduce(barrier.signal, module.MAX))


def _plan(options: ThroughputOptions, processors: Sequence[str]) -> ThroughputMeasurement:
    topology = read_topology(options.topology)
    if topology.directed:
        raise UsageError(f"{options.topology}: arcs of one direction define no route; infer by another method")
    ranks = find_ranks(topology.hosts, processors, str(options.topology))
    return ThroughputMeasurement(topology, ranks, options.repetitions, options.pairs)


def find_ranks(hosts: Sequence[str], processors: Sequence[str], path: str) -> list[int]:
    """Return the rank that measures for each host: the first one there.

    Args:
        hosts: of the topology; where it is of one host alone, its processes, `host#0` and so on.
        processors: the host of each rank.
        path: of the topology, for messages.

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


class ThroughputMeasurement:
    """All measurements of a topology, planned on the first process; the others call `follow_measurement`.

    Args:
        topology: undirected.
        ranks: of each host, the rank that measures.
        repetitions: of each round; the best one of each job counts, since other traffic only reduces rates.
        most: largest number of pairs that send over a link at the same time; None for all.
    """

    def __init__(
        self, topology: InferredTopology, ranks: Sequence[int], repetitions: int, most: int | None = None
    ) -> None:
        self.routes = InferredRoutes(topology)
        self.ranks, self.repetitions = ranks, repetitions
        self._probes = probe_switches(self.routes)
        self._neighbours = pair_neighbours(self.routes)
        cables = self.routes.attachment.cable.tolist()
        across = [pair_across_link(self.routes, one, other, most) for one, other in cables]
        self._through = {
            switch: job
            for switch in range(len(topology.switches))
            if (job := pair_through_switch(self.routes, switch, most))
        }
        self._shared = put_into_rounds([*filter(None, across), *self._through.values()])

    @property
    def rounds(self) -> int:
        """Number of rounds when all switches are wide enough."""
        of_probes = len(put_into_rounds([job for jobs in self._probes.values() for job in jobs]))
        of_hosts = len(put_into_rounds(pair_hosts_of_switches(self.routes)))
        return of_probes + of_hosts + len(self._neighbours) + len(self._shared)

    def run(self, streams: ConcurrentStreams, advance: Callable[[], None]) -> LinkThroughput:
        """Measure all jobs, or as many as possible until all processes stop; return the throughput of links.

        Args:
            streams: of the first process.
            advance: called after each round.
        """
        found: dict[PairJob, PairJobResult] = {}

        def do(rounds: Sequence[Sequence[PairJob]]) -> None:
            for jobs in rounds:
                if streams.stopped:
                    break
                found.update(self._do_round(streams, jobs))
                advance()

        do(put_into_rounds([job for jobs in self._probes.values() for job in jobs]))
        narrow = [
            switch
            for switch, jobs in self._probes.items()
            if all(job in found for job in jobs) and not is_wide_enough(*(found[job] for job in jobs))
        ]
        do(put_into_rounds(pair_hosts_of_switches(self.routes, narrow)))
        do(self._neighbours)
        do(self._shared)
        streams.comm.bcast(None)
        through = {switch: found[job] for switch, job in self._through.items() if job in found}
        return find_throughput(self.routes, list(found.values()), through)

    def _do_round(self, streams: ConcurrentStreams, jobs: Sequence[PairJob]) -> dict[PairJob, PairJobResult]:
        """Measure the jobs of a round at the same time, in both directions."""
        pairs = [(self.ranks[one], self.ranks[other]) for job in jobs for one, other in job.pairs]
        directions = _send_both_directions(streams, streams.comm.bcast((pairs, self.repetitions)))
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


def follow_measurement(streams: ConcurrentStreams) -> None:
    """Take part in what the first process has planned."""
    while (todo := streams.comm.bcast(None)) is not None:
        _send_both_directions(streams, todo)


def _send_both_directions(streams: ConcurrentStreams, todo: tuple[list[Pair], int]) -> tuple[list[Rates], list[Rates]]:
    """Let pairs of ranks send in both directions, `repetitions` times; return the rates, on the first process."""
    pairs, repetitions = todo
    there, back = [], []
    for _ in range(repetitions):
        there.append(streams.measure(pairs))
        back.append(streams.measure([(other, one) for one, other in pairs]))
    return there, back
