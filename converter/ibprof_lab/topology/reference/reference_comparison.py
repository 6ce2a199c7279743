# SPDX-License-Identifier: Apache-2.0
"""Comparison of a measurement with a reference topology: cabling, times of links, slow links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.text.quantities import count_of
from ibprof_converter.routing.rail_files import has_links
from ibprof_converter.routing.synthetic.spec import is_synthetic
from ibprof_lab.lab_choices import LEAST_DELAY, LEAST_SPEED
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.infer.inference_methods import InferenceMethod, apply_method, read_host_delays
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.model.topology_files import READERS, read_graph
from ibprof_lab.topology.reference.cabling_comparison import are_linked_in_cycles, compare_cabling, reduce_graph
from ibprof_lab.topology.reference.differences import (
    CableCount,
    MatchedHosts,
    TopologyDifferences,
    average_processes,
    choose_pairs,
    match_hosts,
)
from ibprof_lab.topology.reference.reference_topology import (
    LARGEST_WITH_CYCLES,
    LinkTimes,
    Reference,
    count_cables,
    find_reference_paths,
    keep_unique,
    read_reference,
    spread_delays,
)
from ibprof_lab.topology.reference.slow_link_detection import SlowLink, find_slow_by_speed, find_slow_links
from ibprof_lab.topology.reference.switch_groups import find_leaves, find_nearer, number_groups

_MOST_SWITCHES = 2048
_MOST_ELSEWHERE = 0.5
_LONG_MESSAGE = 4096

_ONE_HOP_S = 1e-6


@dataclass(frozen=True, slots=True)
class ReferenceComparison:
    """A measurement compared with a reference.

    Attributes:
        matched: hosts that occur in both topologies.
        comparison: differences of cabling.
        times: times of messages on the reference's links; None if only the cabling was compared.
        length: length of the timed messages, bytes.
        slow: links that are slower than expected, the slowest first.
    """

    reference: Reference
    matched: MatchedHosts
    comparison: TopologyDifferences
    times: LinkTimes | None
    length: int
    slow: tuple[SlowLink, ...]

    @property
    def differences(self) -> int:
        """Number of differences."""
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
    """Compare an inferred topology and its delays with a reference.

    Args:
        delays: measured delays; None to use the delays that the inferred topology explains.
        length: length of the timed messages, bytes.
        least_delay: a link is slow if its delay is longer than the expected delay by more than this fraction.
        least_speed: a link is slow if throughput / speed is below this.
        timed: False to compare only the cabling, for a topology without measured latencies.
        statistic: statistic of the delays, such as `median`.

    Raises:
        InconsistentError: the inferred topology and the reference have no common host.
    """
    matched = match_hosts(found.hosts, reference)
    if delays is None:
        matrix = average_processes(found.explain_delays(), matched.of_inferred)
    else:
        matrix = average_processes(delays.matrix(length, statistic), _find_processes(delays, matched))
    pair = choose_pairs(matrix)
    if not len(pair) or not timed:
        return ReferenceComparison(
            reference, matched, compare_cabling(found, reference, matched, matrix), None, length, ()
        )
    paths = find_reference_paths(reference, *matched.vertex[pair].T)
    seconds = matrix[tuple(pair.T)]
    times = spread_delays(paths, seconds, reference.gbps, length)
    leaf = find_leaves(reference, matched.vertex)
    cycles = are_linked_in_cycles(reduce_graph(reference, matched.vertex), matched.vertex, leaf)
    if cycles and reference.vertices <= LARGEST_WITH_CYCLES:
        paths = keep_unique(reference, paths, matched.vertex[pair[:, 0]], LEAST_DELAY)
    # Delays of hosts that are cabled differently than in the reference are no evidence for slow links.
    was = number_groups(leaf)
    nearer = find_nearer(was, matrix)
    elsewhere = nearer != was
    slow = find_slow_links(reference, paths, np.where(elsewhere[pair].any(axis=1), np.nan, seconds), least_delay)
    # The excess of slow links must not make hosts look far from each other.
    corrected = subtract_slow_links(matrix, reference, matched.vertex, slow, None if cycles else nearer)
    comparison = compare_cabling(found, reference, matched, corrected, nearer)
    gone = {each.host for each in comparison.misplaced}.union(*(each.hosts for each in comparison.recabled))
    found_elsewhere = np.array([name in gone for name in matched.names], bool)
    if (found_elsewhere != elsewhere).any() and found_elsewhere.mean() < _MOST_ELSEWHERE:
        seconds = np.where(found_elsewhere[pair].any(axis=1), np.nan, seconds)
        slow = find_slow_links(reference, paths, seconds, least_delay)
        corrected = subtract_slow_links(matrix, reference, matched.vertex, slow, None if cycles else nearer)
        comparison = compare_cabling(found, reference, matched, corrected, nearer)
    missing = {frozenset(pair) for pair in comparison.missing}
    slow = [
        each for each in slow if frozenset(reference.names[end] for end in reference.link[each.link]) not in missing
    ]
    # Do not report the hosts of a slow link also as separated.
    ends = {end for each in slow for end in reference.link[each.link].tolist()}
    far = {name for name, vertex in zip(matched.names, matched.vertex.tolist(), strict=True) if vertex in ends}
    separated = tuple(each for each in comparison.separated if not far.issuperset(each.hosts))
    comparison = replace(comparison, separated=separated)
    if delays is not None and (speed := _measure_throughput(delays, matched, pair)) is not None:
        known = {each.link for each in slow}
        slow += [each for each in find_slow_by_speed(reference, paths, speed, least_speed) if each.link not in known]
    slow.sort(key=lambda each: -each.ratio)
    return ReferenceComparison(reference, matched, comparison, times, length, tuple(slow))


def subtract_slow_links(
    matrix: npt.NDArray[np.float64],
    reference: Reference,
    vertex: npt.NDArray[np.int64],
    slow: list[SlowLink],
    group: npt.NDArray[np.int64] | None,
) -> npt.NDArray[np.float64]:
    """Return the delays without the excess of slow links, float64 [host, host], seconds. `vertex`: int64 [host], the
    hosts' vertices in the reference. `group`: int64 [host], indices of the hosts' switches; None to ignore links
    between switches.
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
        # All hosts of a switch have the same paths to another switch, so the first host represents them.
        was = number_groups(find_leaves(reference, vertex))
        first = np.unique(was, return_index=True)[1]
        pair = np.argwhere(~np.eye(len(first), dtype=bool))
        paths = find_reference_paths(reference, *vertex[first[pair]].T)
        added = np.zeros((len(first), len(first)))
        added[tuple(pair.T)] = np.bincount(paths.pair, excess[paths.link], len(pair))
        corrected -= added[np.ix_(group, group)]
    np.fill_diagonal(corrected, 0.0)
    return corrected


def _find_processes(delays: Delays, matched: MatchedHosts) -> list[list[int]]:
    """Return the processes of each matched name: all processes of a host, or the process with this label."""
    of_host: dict[str, list[int]] = {}
    for process, host in enumerate(delays.hosts):
        of_host.setdefault(host, []).append(process)
    of_label = {label: [process] for process, label in enumerate(delays.labels)}
    return [of_host.get(name) or of_label[name] for name in matched.names]


def _measure_throughput(
    delays: Delays, matched: MatchedHosts, pair: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64] | None:
    """Return each pair's throughput from the delays of its shortest and longest messages, bytes/s, float64 [pair].

    Return None if the longest messages are shorter than `_LONG_MESSAGE`, or all messages have the same length.

    Source: Bufe, equation 1.5.
    """
    short, long = int(delays.lengths[0]), int(delays.lengths[-1])
    if long < _LONG_MESSAGE or long == short:
        return None
    processes = _find_processes(delays, matched)
    longer = average_processes(delays.matrix(long), processes) - average_processes(delays.matrix(short), processes)
    difference = longer[tuple(pair.T)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference > 0, (long - short) / difference, np.nan)


def make_observable_topology(reference: Reference) -> InferredTopology:
    """Return a fabric as a topology without parts that delays cannot show, to compare it with a reference."""
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
        latency_seconds=np.full(len(edge), 1e-6),  # each hop has the same latency
        support=np.full(len(edge), np.nan),
        probability=np.ones(len(edge)),
    )


def compare_cables(
    compared: ReferenceComparison, names: Sequence[str], cables: Mapping[tuple[int, int], int], timed: bool = False
) -> ReferenceComparison:
    """Add to a comparison the links whose number of cables differs from the reference's.

    Args:
        compared: the comparison of the topology with its reference.
        names: names of the topology's vertices.
        cables: (vertex, vertex) -> number of cables between the two vertices of the topology.
        timed: True if the topology has latencies. A topology with latencies, but without parallel cables, was inferred
            from delays. Delays do not show numbers of cables: differences then become undetermined details.
    """
    reference = compared.reference
    expected = count_cables(reference.link, reference.cables)
    # Leave out vertices without links, such as a host's second adapter, which has the host's name.
    linked = sorted({vertex for pair in expected for vertex in pair})
    times = Counter(reference.names[vertex] for vertex in linked)
    vertex_of = {reference.names[each]: each for each in linked if times[reference.names[each]] == 1}
    vertex_of |= dict(zip(compared.matched.names, compared.matched.vertex.tolist(), strict=True))
    differing = []
    for (a, b), count in cables.items():
        low, high = sorted(vertex_of.get(names[each], -1) for each in (a, b))
        wanted = expected.get((low, high), count)
        if wanted != count:
            differing.append(CableCount(reference.names[low], reference.names[high], count, wanted))
    found = compared.comparison
    if differing and timed and max(cables.values()) == 1:
        first, others = differing[0], len(differing) - 1
        more = f" and of {count_of(others, 'other link')}" if others else ""
        text = f"the number of cables of {first.a} to {first.b}{more}: latencies do not show parallel cables"
        return replace(compared, comparison=replace(found, unknown=(*found.unknown, text)))
    return replace(compared, comparison=replace(found, cables=tuple(differing)))


def compare_files(
    inferred: str, reference: str, rail: int, least: float, least_speed: float, method: InferenceMethod
) -> ReferenceComparison:
    """Read two topologies, or delays and a reference, and compare. `ibprof-topology compare` has the same arguments.
    `method` infers the topology from delays.

    Raises:
        InputError: a file is damaged.
        UsageError: the message length was not measured.
        InconsistentError: the two topologies have no common host.
    """
    expected = read_reference(reference, rail)
    if Path(inferred).suffix in READERS:
        found = read_graph(inferred)
        timed = not np.isnan(found.latency_seconds).any()
        if not timed:
            found = replace(found, latency_seconds=np.full(len(found.edge), _ONE_HOP_S))
        compared = compare_with_reference(found, expected, None, method.length or 0, least, least_speed, timed)
        return compare_cables(compared, found.names, count_cables(found.edge, directed=found.directed), timed)
    if is_synthetic(inferred) or Path(inferred).is_dir() or has_links(Path(inferred)):
        stated = read_reference(inferred)
        compared = compare_with_reference(make_observable_topology(stated), expected, None, timed=False)
        return compare_cables(compared, stated.names, count_cables(stated.link, stated.cables))
    delays, length = read_host_delays(inferred, method.unit), method.length
    if length is None:
        length = int(delays.lengths[0])
    elif length not in delays.lengths:
        raise UsageError(f"--length: {length} bytes were not measured")
    # The topology is always inferred from the shortest messages; `length` is for the times of links.
    answer, values = apply_method(replace(method, bootstrap=0, length=None), delays)
    statistic = values.statistic if values else "median"
    return compare_with_reference(answer.topology, expected, delays, length, least, least_speed, statistic=statistic)
