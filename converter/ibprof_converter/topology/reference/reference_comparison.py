# SPDX-License-Identifier: Apache-2.0
"""All that a measurement tells when it is put beside a reference topology: cables, times of links, slow links."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof_converter.latency.model.delays import Delays
from ibprof_converter.topology.model.inferred_topology import InferredTopology
from ibprof_converter.topology.reference.cabling_comparison import are_linked_in_cycles, compare_cabling, reduce_graph
from ibprof_converter.topology.reference.differences import SeparatedHosts, TopologyDifferences
from ibprof_converter.topology.reference.host_groups import find_leaves, find_nearer, number_groups
from ibprof_converter.topology.reference.host_matching import MatchedHosts, match_hosts
from ibprof_converter.topology.reference.link_regression import LARGEST_WITH_CYCLES, keep_unique
from ibprof_converter.topology.reference.link_times import LinkTimes, average_processes, spread_delays
from ibprof_converter.topology.reference.reference_paths import find_reference_paths
from ibprof_converter.topology.reference.reference_topology import Reference
from ibprof_converter.topology.reference.slow_link_detection import (
    LEAST_DELAY,
    LEAST_SPEED,
    SlowLink,
    find_slow_by_speed,
    find_slow_links,
)

_MOST_PAIRS = 300_000
_MOST_SWITCHES = 2048
_MOST_ELSEWHERE = 0.5
_LONG_MESSAGE = 4096


@dataclass(frozen=True, slots=True)
class ReferenceComparison:
    """A measurement beside a reference.

    Attributes:
        reference: what should be.
        matched: the hosts that both have.
        comparison: what is cabled otherwise.
        times: of the links; None where there are no delays.
        length: bytes of the messages of these times.
        slow: links that are slower than they should be, the worst first.
    """

    reference: Reference
    matched: MatchedHosts
    comparison: TopologyDifferences
    times: LinkTimes | None
    length: int
    slow: tuple[SlowLink, ...]

    @property
    def differences(self) -> int:
        """How many differences were found."""
        return self.comparison.differences + len(self.slow)


def compare_with_reference(
    found: InferredTopology,
    reference: Reference,
    delays: Delays | None,
    length: int = 0,
    least_delay: float = LEAST_DELAY,
    least_speed: float = LEAST_SPEED,
    timed: bool = True,
    statistic: str = "median",
) -> ReferenceComparison:
    """Compare an inferred topology, and the delays it is of, with a reference.

    Args:
        found: the topology.
        reference: what should be there.
        delays: as measured; None: those that the topology explains.
        length: bytes of the messages whose times are looked at.
        least_delay: by which share longer than others a delay must be that a link is blamed for.
        least_speed: share of its speed that a link should reach.
        timed: whether the topology's latencies are of a measurement; else only cables are compared.
        statistic: of the delays' samples.

    Raises:
        InconsistentError: they have no host in common.
    """
    matched = match_hosts(found.hosts, reference)
    matrix = _take_matrix(found, matched, delays, length, statistic)
    pair = choose_pairs(matrix)
    if not len(pair) or not timed:
        return ReferenceComparison(
            reference, matched, compare_cabling(found, reference, matched, matrix), None, length, ()
        )
    ways = find_reference_paths(reference, *matched.vertex[pair].T)
    seconds = matrix[tuple(pair.T)]
    times = spread_delays(ways, seconds, reference.gbps, length)
    leaf = find_leaves(reference, matched.vertex)
    circles = are_linked_in_cycles(reduce_graph(reference, matched.vertex), matched.vertex, leaf)
    if circles and reference.vertices <= LARGEST_WITH_CYCLES:
        ways = keep_unique(reference, ways, matched.vertex[pair[:, 0]], LEAST_DELAY)
    # What is slow is not told by hosts whose ways are others than the reference's.
    was = number_groups(leaf)
    nearer = find_nearer(was, matrix)
    elsewhere = nearer != was
    slow = find_slow_links(reference, ways, np.where(elsewhere[pair].any(axis=1), np.nan, seconds), least_delay)
    # Nor who is near to whom by a slow link.
    corrected = subtract_slow_links(matrix, reference, matched.vertex, slow, None if circles else nearer)
    comparison = compare_cabling(found, reference, matched, corrected, nearer)
    gone = _find_elsewhere(comparison)
    found_elsewhere = np.array([name in gone for name in matched.names], bool)
    if (found_elsewhere != elsewhere).any() and found_elsewhere.mean() < _MOST_ELSEWHERE:
        seconds = np.where(found_elsewhere[pair].any(axis=1), np.nan, seconds)
        slow = find_slow_links(reference, ways, seconds, least_delay)
        corrected = subtract_slow_links(matrix, reference, matched.vertex, slow, None if circles else nearer)
        comparison = compare_cabling(found, reference, matched, corrected, nearer)
    missing = {frozenset(pair) for pair in comparison.missing}
    slow = [
        each for each in slow if frozenset(reference.names[end] for end in reference.link[each.link]) not in missing
    ]
    comparison = replace(comparison, separated=_not_by_slow_links(comparison.separated, reference, matched, slow))
    if delays is not None and (speed := _measure_throughput(delays, matched, pair)) is not None:
        known = {each.link for each in slow}
        slow += [each for each in find_slow_by_speed(reference, ways, speed, least_speed) if each.link not in known]
    slow.sort(key=lambda each: -each.ratio)
    return ReferenceComparison(reference, matched, comparison, times, length, tuple(slow))


def _find_elsewhere(comparison: TopologyDifferences) -> frozenset[str]:
    """Give the hosts that are not where the reference has them."""
    hosts = [each.host for each in comparison.misplaced]
    return frozenset(hosts + [host for each in comparison.recabled for host in each.hosts])


def subtract_slow_links(
    matrix: npt.NDArray[np.float64],
    reference: Reference,
    vertex: npt.NDArray[np.int64],
    slow: list[SlowLink],
    group: npt.NDArray[np.int64] | None,
) -> npt.NDArray[np.float64]:
    """Take what slow links add off the delays of all that pass them.

    Args:
        matrix: float64 [host, host], seconds.
        reference: whose links they are.
        vertex: int64 [host], of the reference.
        slow: the links.
        group: int64 [host], the number of the switch that each host is on; None: links between switches do not count.
    """
    if not slow:
        return matrix
    excess = np.zeros(len(reference.link))
    for each in slow:
        excess[each.link] = each.excess_seconds
    of_hosts = np.isin(reference.link, vertex)
    own = np.zeros(reference.vertices)
    np.add.at(own, reference.link[of_hosts], np.repeat(excess, 2).reshape(-1, 2)[of_hosts])
    corrected = matrix - own[vertex][:, None] - own[vertex]
    excess[of_hosts.any(axis=1)] = 0.0
    if group is not None and excess.any() and group.max() < _MOST_SWITCHES:
        # The ways of all hosts of a switch have the same links between switches.
        was = number_groups(find_leaves(reference, vertex))
        first = np.unique(was, return_index=True)[1]
        pair = np.argwhere(~np.eye(len(first), dtype=bool))
        ways = find_reference_paths(reference, *vertex[first[pair]].T)
        added = np.zeros((len(first), len(first)))
        added[tuple(pair.T)] = np.bincount(ways.pair, excess[ways.link], len(pair))
        corrected -= added[np.ix_(group, group)]
    np.fill_diagonal(corrected, 0.0)
    return corrected


def _not_by_slow_links(
    separated: tuple[SeparatedHosts, ...], reference: Reference, matched: MatchedHosts, slow: list[SlowLink]
) -> tuple[SeparatedHosts, ...]:
    """Leave out hosts whose own slow link is why they are far from others."""
    ends = {end for each in slow for end in reference.link[each.link].tolist()}
    far = {name for name, vertex in zip(matched.names, matched.vertex.tolist(), strict=True) if vertex in ends}
    return tuple(each for each in separated if not far.issuperset(each.hosts))


def _take_matrix(
    found: InferredTopology, matched: MatchedHosts, delays: Delays | None, length: int, statistic: str
) -> npt.NDArray[np.float64]:
    if delays is None:
        return average_processes(found.explain_delays(), matched.of_inferred)
    return average_processes(delays.matrix(length, statistic), _find_processes(delays, matched))


def _find_processes(delays: Delays, matched: MatchedHosts) -> list[list[int]]:
    """Give the processes of each host, by its name or by theirs."""
    of_host: dict[str, list[int]] = {}
    for process, host in enumerate(delays.hosts):
        of_host.setdefault(host, []).append(process)
    of_label = {label: [process] for process, label in enumerate(delays.labels)}
    return [of_host.get(name) or of_label[name] for name in matched.names]


def choose_pairs(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Give the pairs of hosts that have a delay, or some of them where they are very many: int64 [pair, 2]."""
    hosts = len(matrix)
    if hosts * (hosts - 1) > _MOST_PAIRS:
        draw = np.unique(np.random.default_rng(0).integers(hosts * hosts, size=_MOST_PAIRS))
        pair = np.stack(np.divmod(draw, hosts), axis=1)
        pair = pair[pair[:, 0] != pair[:, 1]]
    else:
        pair = np.argwhere(~np.eye(hosts, dtype=bool))
    value = matrix[tuple(pair.T)]
    there: npt.NDArray[np.int64] = pair[np.isfinite(value) & (value > 0)]
    return there


def _measure_throughput(
    delays: Delays, matched: MatchedHosts, pair: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64] | None:
    """Give bytes/s of each pair by the delays of the shortest and the longest message. Source: Bufe, equation 1.5."""
    short, long = int(delays.lengths[0]), int(delays.lengths[-1])
    if long < _LONG_MESSAGE or long == short:
        return None
    processes = _find_processes(delays, matched)
    longer = average_processes(delays.matrix(long), processes) - average_processes(delays.matrix(short), processes)
    difference = longer[tuple(pair.T)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference > 0, (long - short) / difference, np.nan)


def make_observable_topology(reference: Reference) -> InferredTopology:
    """Give what delays could show of a fabric, so that fabrics too can be put beside a reference."""
    hosts = np.flatnonzero(reference.is_end).tolist()
    graph = reduce_graph(reference, np.array(hosts, np.int64))
    switches = [vertex for vertex in graph if vertex not in set(hosts)]
    number = {vertex: place for place, vertex in enumerate((*hosts, *switches))}
    edge = np.sort(np.array([[number[a], number[b]] for a, b in graph.edges], np.int32).reshape(-1, 2), axis=1)
    return InferredTopology(
        method="fabric",
        hosts=tuple(reference.names[vertex] for vertex in hosts),
        switches=tuple(f"switch{place + 1}" for place in range(len(switches))),
        edge=edge,
        latency_seconds=np.full(len(edge), 1e-6),  # of each hop, so that more hops are farther
        support=np.full(len(edge), np.nan),
        probability=np.ones(len(edge)),
    )
