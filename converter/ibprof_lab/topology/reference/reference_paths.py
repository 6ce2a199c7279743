# SPDX-License-Identifier: Apache-2.0
"""Paths between hosts of a reference topology, by forwarding tables or shortest paths; times of the links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import shortest_path

from ibprof.errors import UsageError
from ibprof_lab.topology.reference.reference_topology import Reference

Integers = npt.NDArray[np.int64]

_SOURCES_AT_ONCE = 64

Floats = npt.NDArray[np.float64]
NOT_PASSED, AS_FAST, SLOWER = "white", "red", "blue"
"""The paper's colours of links: without a measured path; at most the line-rate time; a longer time."""


@dataclass(frozen=True, slots=True)
class ReferencePaths:
    """The links on the paths of pairs.

    Attributes:
        offset: int64 [pair + 1]; pair i has `link[offset[i]:offset[i + 1]]`, empty without a path.
        link: int64, links of the reference.
    """

    offset: Integers
    link: Integers

    @property
    def hops(self) -> Integers:
        """Number of links of each pair, int64 [pair]."""
        return np.diff(self.offset)

    @property
    def pair(self) -> Integers:
        """The pair of each entry of `link`."""
        return np.repeat(np.arange(len(self.offset) - 1), self.hops)


def find_reference_paths(reference: Reference, source: Integers, destination: Integers) -> ReferencePaths:
    """Find the paths of host pairs: by the reference's forwarding tables, or shortest paths without tables.

    `source` and `destination` are vertices, int [pair], ascending by source.
    """
    if reference.routes is not None and reference.host_lid is not None:
        paths = reference.routes.find_paths(reference.host_lid[source], reference.host_lid[destination])
        return ReferencePaths(paths.offset, paths.end.astype(np.int64) // 2)
    return _find_shortest(reference, source, destination)


def _find_shortest(reference: Reference, source: Integers, destination: Integers) -> ReferencePaths:
    graph = reference.adjacency(weighted=True)
    low, high = np.sort(reference.link, axis=1).astype(np.int64).T
    keys, links = np.unique(low * reference.vertices + high, return_index=True)
    pairs: list[Integers] = []
    passed: list[Integers] = []
    sources = np.unique(source)
    for begin in range(0, len(sources), _SOURCES_AT_ONCE):
        some = sources[begin : begin + _SOURCES_AT_ONCE]
        _, before = shortest_path(graph, indices=some, return_predecessors=True)
        pair = np.flatnonzero(np.isin(source, some))
        row, here = np.searchsorted(some, source[pair]), destination[pair]
        while len(pair):
            back = before[row, here].astype(np.int64)
            on = back >= 0
            pair, row, here, back = pair[on], row[on], here[on], back[on]
            key = np.minimum(here, back) * reference.vertices + np.maximum(here, back)
            pairs.append(pair)
            passed.append(links[np.searchsorted(keys, key)])
            here = back
    if not pairs:
        return ReferencePaths(np.zeros(len(source) + 1, np.int64), np.zeros(0, np.int64))
    of_pair, link = np.concatenate(pairs), np.concatenate(passed)
    # The loop above followed the paths from the end.
    by_pair = np.argsort(of_pair[::-1], kind="stable")
    offset = np.zeros(len(source) + 1, np.int64)
    np.cumsum(np.bincount(of_pair, minlength=len(source)), out=offset[1:])
    return ReferencePaths(offset, link[::-1][by_pair])


@dataclass(frozen=True, slots=True)
class LinkTimes:
    """Times of links.

    Attributes:
        seconds: float64 [link], mean time of a message on the link; nan without a message.
        line_rate_seconds: float64 [link], length / speed; nan if the speed is unknown.
        paths: int64 [link], number of paths over the link, in both directions.
    """

    seconds: Floats
    line_rate_seconds: Floats
    paths: npt.NDArray[np.int64]

    def colours(self) -> tuple[str, ...]:
        """Return the colour of each link; a link of unknown speed has a line-rate time of 0."""
        slower = self.seconds > np.nan_to_num(self.line_rate_seconds)
        return tuple(
            NOT_PASSED if not passed else (SLOWER if more else AS_FAST)
            for passed, more in zip(self.paths, slower, strict=True)
        )

    def saturation(self) -> Floats:
        """Return the strength of each colour, 0 to 1: the difference / the largest difference, float64 [link]."""
        difference = np.abs(np.nan_to_num(self.seconds - np.nan_to_num(self.line_rate_seconds)))
        most = float(difference.max(initial=0.0))
        return difference / most if most else difference


def spread_delays(paths: ReferencePaths, delays: Floats, gbps: Floats, length: int) -> LinkTimes:
    """Spread each pair's delay over the links of its path, inversely to link speed, and average per link.

    A link of twice the speed takes half the time of the others on the path.

    Args:
        delays: float64 [pair], seconds.
        gbps: float64 [link], speeds; an unknown speed is replaced by the median of the known ones.
        length: message length, bytes.

    Source: Bannikov and Salnikov (see `published_methods`), comparison of topologies, steps f and g, formula (4).
    """
    known = gbps[gbps > 0]
    inverse = 1 / np.where(gbps > 0, gbps, float(np.median(known)) if len(known) else 1.0)
    on_way, pair = inverse[paths.link], paths.pair
    whole = np.bincount(pair, on_way, len(paths.offset) - 1)
    count = np.bincount(paths.link, minlength=len(gbps))
    total = np.bincount(paths.link, delays[pair] * on_way / whole[pair], len(gbps))
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(count > 0, total / count, np.nan)
        at_line_rate = length * 8 / (gbps * 1e9)
    return LinkTimes(seconds, at_line_rate, count)


LARGEST_WITH_CYCLES = 1024


def keep_unique(
    reference: Reference, paths: ReferencePaths, source: npt.NDArray[np.int64], epsilon: float
) -> ReferencePaths:
    """Leave out pairs with several shortest paths of about the same length.

    Args:
        reference: topology without tables; in a tree each path is unique.
        paths: shortest paths.
        source: int64 [pair], start vertex of each path.
        epsilon: relative difference of lengths that distinguishes paths.

    Raises:
        UsageError: the graph has cycles, and is too large to search for other paths.
    """
    if reference.routes is not None or len(reference.link) < reference.vertices:
        return paths
    if reference.vertices > LARGEST_WITH_CYCLES:
        raise UsageError(
            f"{reference.origin}: expected at most {LARGEST_WITH_CYCLES} vertices with cycles to search for other "
            f"paths of the same length, found {reference.vertices}; --paths shortest needs no search"
        )
    between = shortest_path(reference.adjacency(weighted=True), directed=False)
    a, b = reference.link.T
    length = between[a, b]
    ends = _last_vertices(reference, paths, source)
    kept = np.zeros(len(ends), bool)
    for start in np.unique(source).tolist():
        of_start = np.flatnonzero((source == start) & (paths.hops > 0))
        to = between[ends[of_start]]
        on_way = np.minimum(between[start, a] + to[:, b], between[start, b] + to[:, a]) + length
        near = on_way <= (1 + epsilon) * between[start, ends[of_start]][:, None]
        kept[of_start] = near.sum(axis=1) == paths.hops[of_start]
    hops = np.where(kept, paths.hops, 0)
    return ReferencePaths(np.concatenate([[0], np.cumsum(hops)]), paths.link[kept[paths.pair]])


def _last_vertices(reference: Reference, paths: ReferencePaths, source: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    here = source.copy()
    for hop in range(int(paths.hops.max(initial=0))):
        on = np.flatnonzero(paths.hops > hop)
        a, b = reference.link[paths.link[paths.offset[on] + hop]].T
        here[on] = np.where(a == here[on], b, a)
    return here
