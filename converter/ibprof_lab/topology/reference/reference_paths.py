# SPDX-License-Identifier: Apache-2.0
"""Paths of messages between hosts of a reference topology: by its forwarding tables, or shortest paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import shortest_path

from ibprof_lab.topology.reference.reference_topology import Reference

Integers = npt.NDArray[np.int64]

_SOURCES_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class ReferencePaths:
    """The links that messages between pairs pass.

    Attributes:
        offset: int64 [pair + 1]; those of pair i are `link[offset[i]:offset[i + 1]]`, none where there is no path.
        link: int64, of the reference.
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
    """Find the paths of pairs of vertices.

    Args:
        reference: with forwarding tables, which are followed, or without.
        source, destination: int [pair], vertices that are hosts, ascending by source.
    """
    if reference.routes is not None and reference.host_lid is not None:
        paths = reference.routes.find_paths(reference.host_lid[source], reference.host_lid[destination])
        return ReferencePaths(paths.offset, paths.end.astype(np.int64) // 2)
    return _find_shortest(reference, source, destination)


def _find_shortest(reference: Reference, source: Integers, destination: Integers) -> ReferencePaths:
    graph = reference.adjacency(weighted=True)
    number: dict[tuple[int, int], int] = {}
    for each, (a, b) in enumerate(reference.link.tolist()):
        number.setdefault((min(a, b), max(a, b)), each)
    keys = np.array([a * reference.vertices + b for a, b in number], np.int64)
    order = np.argsort(keys)
    links = np.array(list(number.values()), np.int64)[order]
    keys = keys[order]
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
    # They were followed from the end on.
    by_pair = np.argsort(of_pair[::-1], kind="stable")
    offset = np.zeros(len(source) + 1, np.int64)
    np.cumsum(np.bincount(of_pair, minlength=len(source)), out=offset[1:])
    return ReferencePaths(offset, link[::-1][by_pair])
