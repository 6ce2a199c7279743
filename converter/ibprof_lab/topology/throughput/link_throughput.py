# SPDX-License-Identifier: Apache-2.0
"""Throughput of each link and switch, from the rates of pairs that sent at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from ibprof_lab.topology.model.host_attachment import NO_EDGE
from ibprof_lab.topology.model.inferred_routes import InferredRoutes
from ibprof_lab.topology.model.inferred_topology import LinkThroughput
from ibprof_lab.topology.throughput.pair_jobs import PairJob

SAME = 0.9
"""Share of the bound by other links from which on these may have been the bottleneck."""


@dataclass(frozen=True, slots=True)
class PairJobResult:
    """The rates of a job.

    Attributes:
        job: that was measured.
        gbps: float64 [pair], of the direction in which the whole job carried less.
    """

    job: PairJob
    gbps: npt.NDArray[np.float64]

    @property
    def total(self) -> float:
        """Rate of all pairs together, Gb/s."""
        return float(self.gbps.sum())


def is_wide_enough(first: PairJobResult, second: PairJobResult, third: PairJobResult) -> bool:
    """Return whether a switch carries all of its pairs at the same time as well as one after another (2.3.2)."""
    return third.total >= SAME * (first.total + second.total)


def find_throughput(
    routes: InferredRoutes, results: Sequence[PairJobResult], through: Mapping[int, PairJobResult]
) -> LinkThroughput:
    """Return the throughput of links and switches.

    A link carries at least the largest rate that was seen on it. It may carry more where the other links of the senders
    explain that rate. Of two hosts on one switch the slower one is the bottleneck, or both are.

    Args:
        routes: of the topology.
        results: of all jobs.
        through: switch -> the result of the job for its maximum.

    Source: Bufe (see `bufe`), sections 2.3.2 to 2.3.4; the bound is ibprof's.
    """
    edges = len(routes.topology.edge)
    gbps, best = np.full(edges, nan), np.full(edges, -1)
    for row, result in enumerate(results):
        for edge, load in _loads(result).items():
            if not gbps[edge] >= load:
                gbps[edge], best[edge] = load, row
    of_hosts = {int(edge) for edge in routes.attachment.host_edge if edge != NO_EDGE}
    at_least = np.zeros(edges, bool)
    for edge in np.flatnonzero(best >= 0).tolist():
        aside = of_hosts if edge in of_hosts else {edge}
        at_least[edge] = gbps[edge] >= SAME * _bound(results[best[edge]].job, edge, gbps, aside)
    switches = len(routes.topology.switches)
    switch_gbps, switch_at_least = np.full(switches, nan), np.zeros(switches, bool)
    for switch, result in through.items():
        if switch < switches:
            switch_gbps[switch] = result.total
            switch_at_least[switch] = result.total >= SAME * _bound(result.job, None, gbps, set())
    return LinkThroughput(gbps, at_least, switch_gbps, switch_at_least)


def _loads(result: PairJobResult) -> dict[int, float]:
    loads: dict[int, float] = {}
    for links, rate in zip(result.job.links, result.gbps.tolist(), strict=True):
        for edge in links:
            loads[edge] = loads.get(edge, 0.0) + rate
    return loads


def _bound(job: PairJob, through: int | None, gbps: npt.NDArray[np.float64], aside: set[int]) -> float:
    """Return the largest rate of a job through an edge, or in total, Gb/s, given the throughput of links.

    Args:
        job: pairs and their links.
        through: the edge; None for all pairs.
        gbps: throughput of links; nan for those that do not limit.
        aside: edges that do not count.
    """
    used = [row for row, links in enumerate(job.links) if through is None or through in links]
    edges = sorted({edge for row in used for edge in job.links[row]} - aside)
    limits = [edge for edge in edges if not isnan(gbps[edge])]
    if not limits:
        return inf
    shares = np.array([[edge in job.links[row] for row in used] for edge in limits], float)
    if not shares.any(axis=0).all():
        return inf  # a pair that nothing else limits
    found = linprog(-np.ones(len(used)), A_ub=shares, b_ub=gbps[limits], bounds=(0, None))
    return -float(found.fun or 0.0) if found.success else inf
