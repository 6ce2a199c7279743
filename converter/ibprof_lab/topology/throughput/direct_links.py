# SPDX-License-Identifier: Apache-2.0
"""Direct links between switches. Delays cannot show a direct link if the known path between the switches is as long.

In the test, two hosts send while other pairs fill a link of the known path. If the switches have a direct link, the two
hosts keep their rate.

Source: Bufe (see `published_methods`), section 2.2.1. Unlike in the thesis, the total rate of all pairs together is
compared with the sum of separately measured rates. About equal totals prove a direct link only if the other pairs
certainly fill the path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ibprof.text.quantities import count_of
from ibprof_lab.topology.model.inferred_topology import NO_EDGE, InferredRoutes, InferredTopology, attach_hosts
from ibprof_lab.topology.throughput.link_throughput import SAME, pair_across_link
from ibprof_lab.topology.throughput.pair_jobs import (
    Pair,
    PairJob,
    PairJobResult,
    RoundMeasurement,
    make_job,
    put_into_rounds,
)

_OVERFULL = 1 / SAME
"""A link is overloaded if sent rate / throughput exceeds this."""


class Finding(Enum):
    """Finding on a direct link between two switches."""

    DIRECT = "direct"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BlockedPath:
    """The path between two hosts, and other pairs that fill one link of this path.

    Attributes:
        hosts: the two hosts; their switches may have a direct link.
        switches: indices of the switches on the path.
        link: indices of the two switches of the filled link.
        jobs: the two hosts alone, the other pairs alone, and all pairs; the two hosts are the first pair of all.
    """

    hosts: Pair
    switches: tuple[int, ...]
    link: tuple[int, int]
    jobs: tuple[PairJob, PairJob, PairJob]


@dataclass(frozen=True, slots=True)
class BlockedRates:
    """The rates of the three jobs of a blocked path, and the finding."""

    path: BlockedPath
    alone: PairJobResult
    others: PairJobResult
    together: PairJobResult
    finding: Finding


@dataclass(frozen=True, slots=True)
class DirectLinkResults:
    """Results of all blocked paths.

    `left_out`: number of pairs that were not tested (see `_block`).
    """

    rates: tuple[BlockedRates, ...]
    left_out: int


class DirectLinkTest:
    """A test for direct links between the switches of a topology.

    Args:
        topology: the undirected topology.
        chosen: pairs of hosts to test; None: one pair for each two switches that are at least two links apart.
    """

    def __init__(self, topology: InferredTopology, chosen: Collection[Pair] | None = None) -> None:
        self.routes = InferredRoutes(topology)
        pairs = self._all_pairs() if chosen is None else chosen
        found = [_block(self.routes, pair) for pair in pairs]
        self.paths = [path for path in found if path is not None]
        self.left_out = len(found) - len(self.paths)
        # The third job of a path measures all its pairs together. Paths can be measured at the same time if their third
        # jobs share no resource.
        self._path_of = {path.jobs[2]: path for path in self.paths}
        self._rounds = put_into_rounds([path.jobs[2] for path in self.paths])

    @property
    def rounds(self) -> int:
        """Number of rounds, three for each set of disjoint paths."""
        return 3 * len(self._rounds)

    def run(self, measurement: RoundMeasurement, advance: Callable[[], None]) -> DirectLinkResults:
        """Measure the paths, until all are measured or all processes stop."""
        results: list[BlockedRates] = []
        for row in self._rounds:
            paths = [self._path_of[job] for job in row]
            found: dict[PairJob, PairJobResult] = {}
            for step in range(3):
                if not measurement.stopped:
                    found.update(measurement.measure([path.jobs[step] for path in paths]))
                    advance()
            if len(found) == 3 * len(paths):
                results += [_judge(self.routes, path, *(found[job] for job in path.jobs)) for path in paths]
        return DirectLinkResults(tuple(results), self.left_out)

    def _all_pairs(self) -> Iterator[Pair]:
        """Yield one pair of hosts for each pair of switches that are at least two links apart."""
        first: dict[int, int] = {}
        for host, switch in enumerate(self.routes.attachment.host_switch.tolist()):
            first.setdefault(switch, host)
        for one, other in combinations(first.values(), 2):
            if len(self.routes.switches(one, other)) > 2:
                yield one, other


def _block(routes: InferredRoutes, pair: Pair) -> BlockedPath | None:
    """Choose a link of a pair's path, and other pairs that fill this link.

    Pairs with the whole path on their route are excluded: if a direct link exists, they could use it.

    Returns:
        None if the path is uncertain or has only one link between switches, or if no other pair can fill a link.
    """
    switches = routes.switches(*pair)
    if len(switches) < 3 or not routes.is_certain(*pair):
        return None
    for link in sorted(pairwise(switches), key=lambda link: -min(routes.count_behind(*link))):
        if others := pair_across_link(routes, *link, avoid=pair):
            together = make_job(routes, [pair, *others.pairs])
            return BlockedPath(pair, tuple(switches), link, (make_job(routes, [pair]), others, together))
    return None


def _judge(
    routes: InferredRoutes, path: BlockedPath, alone: PairJobResult, others: PairJobResult, together: PairJobResult
) -> BlockedRates:
    if together.total < SAME * (alone.total + others.total):
        finding = Finding.NONE
    elif _would_not_fit(routes, path, alone, others):
        finding = Finding.DIRECT
    else:
        finding = Finding.UNKNOWN
    return BlockedRates(path, alone, others, together, finding)


def _would_not_fit(routes: InferredRoutes, path: BlockedPath, alone: PairJobResult, others: PairJobResult) -> bool:
    """Return True if the link certainly cannot carry the traffic of all pairs together.

    If the throughput of the link is known, it must be clearly below the sum of the rates. Otherwise, the other pairs
    must slow each other down; if there is one other pair, its hosts must be the two ends of the link.
    """
    known, demand = routes.topology.throughput, alone.total + others.total
    edge = routes.edge_between(*path.link)
    if known is not None and not known.edge_at_least[edge] and known.edge_gbps[edge] > 0:
        return bool(demand > _OVERFULL * known.edge_gbps[edge])
    if len(others.gbps) > 1:
        return others.total < SAME * len(others.gbps) * alone.total
    ends = [host for host in others.job.pairs[0] if routes.attachment.host_edge[host] == NO_EDGE]
    return {int(routes.attachment.host_switch[host]) for host in ends} == set(path.link)


def add_direct_links(topology: InferredTopology, found: Iterable[BlockedRates]) -> InferredTopology:
    """Return the topology with the direct links added. A direct link has the same latency as its path."""
    direct = [each for each in found if each.finding is Finding.DIRECT]
    routes, count = InferredRoutes(topology), len(direct)
    ends = np.array([(each.path.switches[0], each.path.switches[-1]) for each in direct], np.int64).reshape(-1, 2)
    throughput = topology.throughput and replace(
        topology.throughput,
        edge_gbps=np.append(topology.throughput.edge_gbps, [each.alone.total for each in direct]),
        edge_at_least=np.append(topology.throughput.edge_at_least, np.ones(count, np.bool_)),
    )
    return replace(
        topology,
        edge=np.vstack([topology.edge, np.sort(routes.attachment.vertices()[ends], axis=1)]).astype(np.int32),
        latency_seconds=np.append(topology.latency_seconds, routes.distance[tuple(ends.T)]),
        support=np.append(topology.support, np.full(count, np.nan)),
        probability=np.append(topology.probability, np.ones(count)),
        throughput=throughput,
    )


_WORDS = {
    Finding.DIRECT: "a direct link",
    Finding.NONE: "no direct link",
    Finding.UNKNOWN: "unknown, since the filled link may carry all pairs at full rate",
}


def describe_direct_links(topology: InferredTopology, found: DirectLinkResults) -> Iterator[str]:
    """Yield a line for each tested pair, direct links first, and a line with the number of pairs without a test."""
    order, names = list(Finding), _name_switches(topology)
    for each in sorted(found.rates, key=lambda each: order.index(each.finding)):
        row = _row(topology, names, each)
        others = f"{count_of(row['pairs'], 'pair')} between {' and '.join(row['blocked'])}"
        yield (
            f"{' to '.join(row['hosts'])}: {_WORDS[each.finding]}; this pair sends {row['gbps']:.3g} Gb/s alone, "
            f"{row['gbps_blocked']:.3g} Gb/s while {others} send; the others send {row['others_gbps']:.3g} Gb/s alone, "
            f"{row['others_gbps_blocked']:.3g} Gb/s while this pair sends"
        )
    if found.left_out:
        yield (
            f"not tried: {count_of(found.left_out, 'pair')}; a test needs a known path over several links, and "
            "other hosts that can fill one of these links"
        )


def list_direct_links(topology: InferredTopology, found: DirectLinkResults) -> dict[str, Any]:
    """Return the JSON results: `direct_links[]`, and `not_tried`, the number of pairs that were not tested."""
    names = _name_switches(topology)
    return {"direct_links": [_row(topology, names, each) for each in found.rates], "not_tried": found.left_out}


def _name_switches(topology: InferredTopology) -> list[str]:
    """Return the names of all switches; a switch that stands for a host has the host's name."""
    return [topology.names[vertex] for vertex in attach_hosts(topology).vertices()]


def _row(topology: InferredTopology, names: Sequence[str], each: BlockedRates) -> dict[str, Any]:
    own = float(each.together.gbps[0])
    return {
        "hosts": [topology.hosts[host] for host in each.path.hosts],
        "finding": each.finding.value,
        "path": [names[switch] for switch in each.path.switches],
        "blocked": [names[switch] for switch in each.path.link],
        "pairs": len(each.others.gbps),
        "gbps": each.alone.total,
        "gbps_blocked": own,
        "others_gbps": each.others.total,
        "others_gbps_blocked": each.together.total - own,
    }
