# SPDX-License-Identifier: Apache-2.0
"""Throughput of each link and switch, from rates of host pairs that send at the same time.

Unlike in Bufe's thesis, the throughput of a path is the smallest throughput of its links.

Source: Bufe (see `published_methods`), section 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, pairwise
from math import inf, isnan, nan

import numpy as np
import numpy.typing as npt

from ibprof_lab.latency.measure.measurement_plan import round_robin
from ibprof_lab.topology.model.inferred_topology import NO_EDGE, InferredRoutes, InferredTopology, LinkThroughput
from ibprof_lab.topology.throughput.pair_jobs import (
    Pair,
    PairJob,
    PairJobResult,
    RoundMeasurement,
    make_job,
    put_into_rounds,
)

SAME = 0.9
"""If a link's rate reaches this fraction of the rate that all other links permit, another link may be the
bottleneck."""

_ALL_PAIRS = 8
"""On a switch with at most this many hosts, all pairs of hosts are measured. On a larger switch, each host is measured
only with the next host in the order of latency."""

_FEWEST_TO_SHARE = 4
_TRIED = 32
"""Largest number of partners that are tried for a host."""


def is_wide_enough(first: PairJobResult, second: PairJobResult, third: PairJobResult) -> bool:
    """Return True if the rate of all pairs together (`third`) is near the sum of the other two rates (2.3.2)."""
    return third.total >= SAME * (first.total + second.total)


def find_throughput(
    routes: InferredRoutes, results: Sequence[PairJobResult], through: Mapping[int, PairJobResult]
) -> LinkThroughput:
    """Compute the throughput of links and switches.

    The throughput of a link is the largest rate that was measured on it. This rate is a lower bound if the throughputs
    of other links explain it. For a host's link, only links between switches count as other links.

    Args:
        through: index of a switch -> result of the job that loads the switch most.

    Source: Bufe (see `published_methods`), sections 2.3.2 to 2.3.4; the bound is ibprof's.
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
    """Return the largest rate, Gb/s, that links' throughputs permit a job over the edge `through` (None: in total).
    Links of unknown throughput (nan), and edges in `aside`, permit any rate.
    """
    used = [row for row, links in enumerate(job.links) if through is None or through in links]
    edges = sorted({edge for row in used for edge in job.links[row]} - aside)
    limits = [edge for edge in edges if not isnan(gbps[edge])]
    if not limits:
        return inf
    shares = np.array([[edge in job.links[row] for row in used] for edge in limits], float)
    if not shares.any(axis=0).all():
        return inf  # no link limits the rate of at least one pair
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to import)

    found = linprog(-np.ones(len(used)), A_ub=shares, b_ub=gbps[limits], bounds=(0, None))
    return -float(found.fun or 0.0) if found.success else inf


class ThroughputMeasurement:
    """All measurements of a topology's links and switches. At most `most` pairs use a link at the same time."""

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
        """Number of rounds if `probe_switches` finds no narrow switch."""
        of_probes = len(put_into_rounds([job for jobs in self._probes.values() for job in jobs]))
        of_hosts = len(put_into_rounds(pair_hosts_of_switches(self._routes)))
        return of_probes + of_hosts + len(self._neighbours) + len(self._shared)

    def run(self, measurement: RoundMeasurement, advance: Callable[[], None]) -> LinkThroughput:
        """Measure the jobs, until all are measured or all processes stop; return the throughput of links and switches.
        The function calls `advance` after each round.
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


def pair_neighbours(routes: InferredRoutes) -> list[list[PairJob]]:
    """Pair directly linked hosts; return rounds that cover all links between hosts (2.3.1, algorithms 4 and 5).

    In each round, paths follow links that were not yet measured. A path begins at the host with the most unmeasured
    links, and continues at the neighbour with the most unmeasured links. A round measures every second link of each
    path of the round.
    """
    host_of = {
        int(switch): host
        for host, switch in enumerate(routes.attachment.host_switch)
        if routes.attachment.host_edge[host] == NO_EDGE
    }
    left: dict[int, set[int]] = {host: set() for host in host_of.values()}
    for one, other in routes.attachment.cable.tolist():
        if one in host_of and other in host_of:
            left[host_of[one]].add(host_of[other])
            left[host_of[other]].add(host_of[one])
    rounds = []
    while any(left.values()):
        pairs = _pair_along_paths(left)
        for one, other in pairs:
            left[one].discard(other)
            left[other].discard(one)
        rounds.append([make_job(routes, [pair]) for pair in pairs])
    return rounds


def _pair_along_paths(left: dict[int, set[int]]) -> list[Pair]:
    used: set[int] = set()
    pairs = []
    for start in sorted(left, key=lambda host: -len(left[host])):
        path = [] if start in used else [start]
        while path:
            used.add(path[-1])
            onward = left[path[-1]] - used
            if not onward:
                break
            path.append(max(onward, key=lambda host: (len(left[host]), -host)))
        if len(path) % 2:
            used.discard(path.pop())
        pairs += list(zip(path[::2], path[1::2], strict=True))
    return pairs


def probe_switches(routes: InferredRoutes) -> dict[int, tuple[PairJob, PairJob, PairJob]]:
    """Return three jobs for each switch with four hosts or more: all pairs of its hosts except one pair; the
    left-out pair; all pairs. The switch is narrow if the third job's rate is below `SAME` times the sum of the first
    two jobs' rates (2.3.2).
    """
    probes = {}
    for switch, hosts in _hosts_by_switch(routes).items():
        if len(hosts) >= _FEWEST_TO_SHARE:
            pairs = list(zip(hosts[::2], hosts[1::2], strict=False))
            alone = [f"switch {switch}"]
            first, second, third = (make_job(routes, chosen, alone) for chosen in (pairs[1:], pairs[:1], pairs))
            probes[switch] = first, second, third
    return probes


def pair_hosts_of_switches(routes: InferredRoutes, narrow: Iterable[int] = ()) -> list[PairJob]:
    """Pair the hosts on each switch (2.3.2), and the only host of a switch with the nearest host of another switch.
    Each pair is a job. Pairs on `narrow` switches are measured one at a time.
    """
    jobs = []
    narrow = set(narrow)
    for switch, hosts in _hosts_by_switch(routes).items():
        alone = [f"switch {switch}"] if switch in narrow else []
        if len(hosts) <= _ALL_PAIRS:
            rounds = (pairs.tolist() for pairs in round_robin(len(hosts)))
            chosen = [(hosts[one], hosts[other]) for pairs in rounds for one, other in pairs]
        else:
            chosen = list(pairwise(hosts))
        jobs += [make_job(routes, [pair], alone) for pair in chosen]
        if len(hosts) == 1 and routes.hosts > 1:
            jobs.append(make_job(routes, [(hosts[0], routes.nearest(hosts[0]))]))
    return jobs


def _hosts_by_switch(routes: InferredRoutes) -> dict[int, list[int]]:
    """Return index of a switch -> its hosts, sorted by the latency of their links, ascending."""
    found: dict[int, list[int]] = {}
    edge = routes.attachment.host_edge
    for host in sorted(range(routes.hosts), key=lambda host: routes.topology.latency_seconds[edge[host]]):
        if edge[host] != NO_EDGE:
            found.setdefault(int(routes.attachment.host_switch[host]), []).append(host)
    return found


def pair_across_link(
    routes: InferredRoutes, one: int, other: int, most: int | None = None, avoid: Pair | None = None
) -> PairJob | None:
    """Pair as many hosts as possible whose messages all use the link between two switches (2.3.3).

    Args:
        one, other: indices of the two switches; the first host of each pair is on the side of `one`.
        most: largest number of pairs; None for no limit.
        avoid: two hosts to leave out, and with them all pairs whose path passes both hosts' switches.

    Returns:
        The job; None if there is no pair that certainly uses the link.
    """
    sides = (routes.behind(one, other), routes.behind(other, one))
    near, far = ([host for host in side if avoid is None or host not in avoid] for side in sides)
    edge = routes.edge_between(one, other)
    ends = {int(routes.attachment.host_switch[host]) for host in avoid or ()}

    def fits(pair: Pair) -> bool:
        return edge in routes.links(*pair) and not (ends and ends.issubset(routes.switches(*pair)))

    return _pair_up(routes, near, far, fits, most)


def pair_through_switch(routes: InferredRoutes, switch: int, most: int | None = None) -> PairJob | None:
    """Pair hosts whose messages all pass a switch (2.3.4), at most `most` pairs; None if there is no such pair. The
    branches of the switch are divided into two groups with about equal numbers of hosts. The hosts of a pair are in
    different groups.
    """
    hosts = np.flatnonzero(np.isfinite(routes.distance[switch, routes.attachment.host_switch]))
    _, part, sizes = np.unique(routes.branch_of(switch, hosts), return_inverse=True, return_counts=True)
    group = np.array(split_evenly(sizes.tolist()), np.int64)[part.ravel()]
    near, far = (routes.spread(switch, hosts[group == side]) for side in (0, 1))
    return _pair_up(routes, near, far, lambda pair: switch in routes.switches(*pair), most)


def split_evenly(sizes: list[int]) -> list[int]:
    """Divide parts into two groups with total sizes as equal as possible; return each part's group, 0 or 1."""
    sums = [1]  # sums[k]: bit s is set if some of the first k sizes have the sum s
    for size in sizes:
        sums.append(sums[-1] | sums[-1] << size)
    half = sum(sizes) // 2
    total = (sums[-1] & ((2 << half) - 1)).bit_length() - 1
    groups = [0] * len(sizes)
    for row in range(len(sizes) - 1, -1, -1):
        if not sums[row] >> total & 1:
            groups[row] = 1
            total -= sizes[row]
    return groups


def _pair_up(
    routes: InferredRoutes, near: list[int], far: list[int], fits: Callable[[Pair], bool], most: int | None
) -> PairJob | None:
    """Pair each host of `near` with the first unpaired host of `far` for which `fits` and `is_certain` are True."""
    limit = min(len(near), len(far)) if most is None else most
    free = dict.fromkeys(far)
    pairs: list[Pair] = []
    for host in near:
        if len(pairs) >= limit:
            break
        for peer in islice(free, _TRIED):
            if host != peer and fits((host, peer)) and routes.is_certain(host, peer):
                pairs.append((host, peer))
                del free[peer]
                break
    return make_job(routes, pairs) if pairs else None
