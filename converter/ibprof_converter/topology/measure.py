# SPDX-License-Identifier: Apache-2.0
"""The throughput of a topology's links, measured: all jobs, put into rounds, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ibprof_converter.latency.flows import Flows
from ibprof_converter.topology.jobs import Job, put_into_rounds
from ibprof_converter.topology.model import InferredTopology, Throughput
from ibprof_converter.topology.routes import Routes
from ibprof_converter.topology.throughput import Result, find_throughput, is_wide_enough
from ibprof_converter.topology.throughput_plan import (
    pair_across_link,
    pair_hosts_of_switches,
    pair_neighbours,
    pair_through_switch,
    probe_switches,
)

_GBPS = 8e-9
"""Bytes a second -> Gb/s."""


class Measurement:
    """All that is measured of a topology; the same on every process.

    Args:
        topology: undirected.
        repetitions: of each round; of each job the best one counts, since whatever else is on the network only takes.
        most: pairs that send over a link at the same time; None for as many as there are.
    """

    def __init__(self, topology: InferredTopology, repetitions: int, most: int | None = None) -> None:
        self.routes = Routes(topology)
        self.repetitions = repetitions
        self._probes = probe_switches(self.routes)
        self._neighbours = pair_neighbours(self.routes)
        cables = self.routes.places.cable.tolist()
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

    def run(self, flows: Flows, ranks: Sequence[int], advance: Callable[[], None]) -> Throughput | None:
        """Measure it all, or as far as it goes until all are told to stop.

        Args:
            flows: of this process.
            ranks: of each host, the rank that measures.
            advance: told after each round.

        Returns:
            What links carry, on the first process; None on the others.
        """
        found: dict[Job, Result] = {}

        def do(rounds: Sequence[Sequence[Job]]) -> None:
            for jobs in rounds:
                if flows.stopped:
                    break
                found.update(self._do_round(flows, ranks, jobs))
                advance()

        do(put_into_rounds([job for jobs in self._probes.values() for job in jobs]))
        narrow = [
            switch
            for switch, jobs in self._probes.items()
            if all(job in found for job in jobs) and not is_wide_enough(*(found[job] for job in jobs))
        ]
        do(put_into_rounds(pair_hosts_of_switches(self.routes, flows.comm.bcast(narrow))))
        do(self._neighbours)
        do(self._shared)
        if flows.comm.rank:
            return None
        through = {switch: found[job] for switch, job in self._through.items() if job in found}
        return find_throughput(self.routes, list(found.values()), through)

    def _do_round(self, flows: Flows, ranks: Sequence[int], jobs: Sequence[Job]) -> dict[Job, Result]:
        """Do the jobs of a round at the same time, there and back; the results, on the first process."""
        pairs = [(ranks[one], ranks[other]) for job in jobs for one, other in job.pairs]
        there, back = [], []
        for _ in range(self.repetitions):
            there.append(flows.measure(pairs))
            back.append(flows.measure([(other, one) for one, other in pairs]))
        if flows.comm.rank:
            return {}
        results, begin = {}, 0
        for job in jobs:
            own = slice(begin, begin + len(job.pairs))
            begin = own.stop
            of_directions = []
            for attempts in (there, back):
                rates = [attempt[own] for attempt in attempts if attempt is not None]
                of_directions.append(max(rates, key=lambda each: float(each.sum())))
            slower = min(of_directions, key=lambda each: float(each.sum()))
            results[job] = Result(job, np.asarray(slower) * _GBPS)
        return results
