# SPDX-License-Identifier: Apache-2.0
"""Measurement of the throughput of a topology's links: all jobs, put into rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ibprof_lab.topology.model.inferred_routes import InferredRoutes
from ibprof_lab.topology.model.inferred_topology import InferredTopology, LinkThroughput
from ibprof_lab.topology.throughput.concurrent_measurement import RoundMeasurement
from ibprof_lab.topology.throughput.link_throughput import PairJobResult, find_throughput, is_wide_enough
from ibprof_lab.topology.throughput.pair_jobs import PairJob, put_into_rounds
from ibprof_lab.topology.throughput.throughput_plan import (
    pair_across_link,
    pair_hosts_of_switches,
    pair_neighbours,
    pair_through_switch,
    probe_switches,
)


class ThroughputMeasurement:
    """All measurements of a topology's links and switches.

    Args:
        topology: undirected.
        most: largest number of pairs that send over a link at the same time; None for all.
    """

    def __init__(self, topology: InferredTopology, most: int | None = None) -> None:
        self._routes = InferredRoutes(topology)
        self._probes = probe_switches(self._routes)
        self._neighbours = pair_neighbours(self._routes)
        cables = self._routes.attachment.cable.tolist()
        across = [pair_across_link(self._routes, one, other, most) for one, other in cables]
        self._through = {
            switch: job
            for switch in range(len(topology.switches))
            if (job := pair_through_switch(self._routes, switch, most))
        }
        self._shared = put_into_rounds([*filter(None, across), *self._through.values()])

    @property
    def rounds(self) -> int:
        """Number of rounds when all switches are wide enough."""
        of_probes = len(put_into_rounds([job for jobs in self._probes.values() for job in jobs]))
        of_hosts = len(put_into_rounds(pair_hosts_of_switches(self._routes)))
        return of_probes + of_hosts + len(self._neighbours) + len(self._shared)

    def run(self, measurement: RoundMeasurement, advance: Callable[[], None]) -> LinkThroughput:
        """Measure all jobs, or as many as possible until all processes stop; return the throughput of links.

        Args:
            measurement: of rounds.
            advance: called after each round.
        """
        found: dict[PairJob, PairJobResult] = {}

        def do(rounds: Sequence[Sequence[PairJob]]) -> None:
            for jobs in rounds:
                if measurement.stopped:
                    break
                found.update(measurement.measure(jobs))
                advance()

        do(put_into_rounds([job for jobs in self._probes.values() for job in jobs]))
        narrow = [
            switch
            for switch, jobs in self._probes.items()
            if all(job in found for job in jobs) and not is_wide_enough(*(found[job] for job in jobs))
        ]
        do(put_into_rounds(pair_hosts_of_switches(self._routes, narrow)))
        do(self._neighbours)
        do(self._shared)
        through = {switch: found[job] for switch, job in self._through.items() if job in found}
        return find_throughput(self._routes, list(found.values()), through)
