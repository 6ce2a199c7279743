# SPDX-License-Identifier: Apache-2.0
"""The throughput of a topology's links, measured: all jobs, put into rounds, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ibprof_converter.latency.measure.concurrent_streams import ConcurrentStreams
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
"""Bytes a second -> Gb/s."""


class ThroughputMeasurement:
    """All that is measured of a topology, planned on the first process; the others `follow_measurement`.

    Args:
        topology: undirected.
        ranks: of each host, the rank that measures.
        repetitions: of each round; of each job the best one counts, since whatever else is on the network only takes.
        most: pairs that send over a link at the same time; None for as many as there are.
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
        """How many rounds there are, when all switches are wide enough."""
        of_probes = len(put_into_rounds([job for jobs in self._probes.values() for job in jobs]))
        of_hosts = len(put_into_rounds(pair_hosts_of_switches(self.routes)))
        return of_probes + of_hosts + len(self._neighbours) + len(self._shared)

    def run(self, flows: ConcurrentStreams, advance: Callable[[], None]) -> LinkThroughput:
        """Measure it all, or as far as it goes until all are told to stop; what links carry.

        Args:
            flows: of the first process.
            advance: told after each round.
        """
        found: dict[PairJob, PairJobResult] = {}

        def do(rounds: Sequence[Sequence[PairJob]]) -> None:
            for jobs in rounds:
                if flows.stopped:
                    break
                found.update(self._do_round(flows, jobs))
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
        flows.comm.bcast(None)
        through = {switch: found[job] for switch, job in self._through.items() if job in found}
        return find_throughput(self.routes, list(found.values()), through)

    def _do_round(self, flows: ConcurrentStreams, jobs: Sequence[PairJob]) -> dict[PairJob, PairJobResult]:
        """Do the jobs of a round at the same time, there and back."""
        pairs = [(self.ranks[one], self.ranks[other]) for job in jobs for one, other in job.pairs]
        directions = _send_both_ways(flows, flows.comm.bcast((pairs, self.repetitions)))
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


def follow_measurement(flows: ConcurrentStreams) -> None:
    """Do a process's part of what the first one has planned and runs."""
    while (todo := flows.comm.bcast(None)) is not None:
        _send_both_ways(flows, todo)


def _send_both_ways(flows: ConcurrentStreams, todo: tuple[list[Pair], int]) -> tuple[list[Rates], list[Rates]]:
    """Let pairs of ranks send, there and back, some times; the rates of each time, on the first process."""
    pairs, repetitions = todo
    there, back = [], []
    for _ in range(repetitions):
        there.append(flows.measure(pairs))
        back.append(flows.measure([(other, one) for one, other in pairs]))
    return there, back
