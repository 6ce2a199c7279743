# SPDX-License-Identifier: Apache-2.0
"""Narrow cuts of any fabric: tori, dragonflies and irregular ones have no levels that would show them.

A cut is good where the bytes that cross it are many for the speed of its links. Candidates are the nearer halves of
links (the switches that are nearer to the one end than to the other), and sweeps along the first eigenvectors of the
graph's Laplacian. The best ones are improved by moving one switch after the other to the other side. Every set of
switches is a valid bound; that none is narrower is not proven.

Source: D. Z. Djokovic, "Distance-preserving subgraphs of hypercubes", J. Combin. Theory B 14, 1973 (halves); B.
Kernighan and S. Lin, "An efficient heuristic procedure for partitioning graphs", Bell Sys. Tech. J. 49, 1970 (moves).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind

SWITCHES_LIMIT = 1200
"""Switches beyond which no bisections are looked for."""

_HALVES = 96
"""Links whose nearer halves are tried."""

_EIGENVECTORS = 4

_IMPROVED = 4
"""Best candidates that are improved."""

HALF = "nearer half of a link, improved by moving switches"
SWEEP = "sweep along an eigenvector, improved by moving switches"

Floats = npt.NDArray[np.float64]
Sides = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bisection:
    """A set of nodes: bool [node], hosts with their switches; and how it was found."""

    inside: Sides
    method: str


@dataclass(frozen=True, slots=True)
class _CutGraph:
    """Switches with the speed of their links, and the bytes between their hosts; float64 [switch, switch] each."""

    gbps: Floats
    bytes: Floats

    def measure(self, side: Floats) -> Floats:
        """Return the bytes over the speed of cuts, of the direction in which more cross: float64 [cut].

        Args:
            side: float64 [cut, switch], 1 inside and 0 outside.
        """
        far = 1 - side
        speed = np.einsum("cs,cs->c", side @ self.gbps, far)
        out = np.einsum("cs,cs->c", side @ self.bytes, far)
        into = np.einsum("cs,cs->c", far @ self.bytes, side)
        return np.where(speed > 0, np.maximum(out, into) / np.maximum(speed, 1e-300), 0.0)

    def improve(self, side: Floats) -> tuple[float, Floats]:
        """Move the switch that helps most to the other side, as long as one helps."""
        best = float(self.measure(side[np.newaxis])[0])
        for _ in range(2 * len(side)):
            moved = self._measure_moves(side)
            chosen = int(moved.argmax())
            if not moved[chosen] > best * (1 + 1e-9):
                break
            best = float(moved[chosen])
            side = side.copy()
            side[chosen] = 1 - side[chosen]
        return best, side

    def _measure_moves(self, side: Floats) -> Floats:
        """Return what `measure` returns after moving each switch: float64 [switch]."""
        far = 1 - side
        sign = far - side  # 1 for those that would move in
        speed_in, speed_far = self.gbps @ side, self.gbps @ far
        speed = float(side @ speed_far) + sign * (speed_far - speed_in)
        to_in, to_far = self.bytes @ side, self.bytes @ far
        from_in, from_far = side @ self.bytes, far @ self.bytes
        out = float(side @ to_far) + sign * (to_far - from_in)
        into = float(far @ to_in) + sign * (from_far - to_in)
        size = side.sum() + sign
        valid = (speed > 1e-9) & (size > 0) & (size < len(side))
        return np.where(valid, np.maximum(out, into) / np.maximum(speed, 1e-300), 0.0)


def find_narrow_bisection(
    fabric: Fabric,
    source: npt.NDArray[np.integer],
    destination: npt.NDArray[np.integer],
    amount: Floats,
) -> Bisection | None:
    """Return the cut of the longest time that the search finds; None where there is none, or too many switches.

    Args:
        fabric: nodes and links.
        source, destination: int [flow], nodes.
        amount: float64 [flow], bytes.
    """
    switches = np.flatnonzero(fabric.node_kind == NodeKind.SWITCH)
    if not 2 < len(switches) <= SWITCHES_LIMIT or not len(source):
        return None
    number = np.full(fabric.nodes + 1, -1)
    number[switches] = np.arange(len(switches))
    of_node = _find_switches(fabric, number)
    graph = _make_graph(fabric, of_node, number, len(switches), source, destination, amount)
    candidates = [*_halve(graph), *_sweep(graph)]
    if not candidates:
        return None
    candidates.sort(key=lambda each: -each[0])
    best = max(((*graph.improve(side), method) for _, side, method in candidates[:_IMPROVED]), key=lambda each: each[0])
    inside = np.append(best[1], 0.0)[of_node[:-1]] > 0
    return Bisection(inside, best[2])


def _find_switches(fabric: Fabric, number: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the switch of each node, its own or the one that it is cabled to: int64 [node + 1], -1 for none."""
    of_node = number.astype(np.int64).copy()
    for end in (0, 1):
        near, far = fabric.link_node[:, end], fabric.link_node[:, 1 - end]
        is_host = (number[near] < 0) & (number[far] >= 0)
        of_node[near[is_host]] = number[far[is_host]]
    return of_node


def _make_graph(
    fabric: Fabric,
    of_node: npt.NDArray[np.int64],
    number: npt.NDArray[np.integer],
    count: int,
    source: npt.NDArray[np.integer],
    destination: npt.NDArray[np.integer],
    amount: Floats,
) -> _CutGraph:
    gbps, between = np.zeros((count, count)), np.zeros((count, count))
    ends = number[fabric.link_node]
    inner = (ends >= 0).all(axis=1)
    np.add.at(gbps, (ends[inner, 0], ends[inner, 1]), np.nan_to_num(fabric.link_gbps)[inner])
    one, other = of_node[source], of_node[destination]
    known = (one >= 0) & (other >= 0) & (one != other)
    np.add.at(between, (one[known], other[known]), amount[known])
    np.fill_diagonal(gbps, 0)
    return _CutGraph(gbps + gbps.T, between)


def _halve(graph: _CutGraph) -> list[tuple[float, Floats, str]]:
    """Return the nearer halves of links; switches that are as near to both ends are tried on either side."""
    from scipy.sparse.csgraph import shortest_path  # noqa: PLC0415  (slow to import)

    edges = np.argwhere(np.triu(graph.gbps) > 0)
    if not len(edges):
        return []
    edges = edges[np.unique(np.linspace(0, len(edges) - 1, _HALVES).astype(np.intp))]
    hops = shortest_path(graph.gbps > 0, unweighted=True, indices=np.unique(edges))
    row = {int(node): index for index, node in enumerate(np.unique(edges))}
    near = hops[[row[int(each)] for each in edges[:, 0]]]
    far = hops[[row[int(each)] for each in edges[:, 1]]]
    sides = np.concatenate([near < far, near <= far]).astype(np.float64)
    return [(float(time), side, HALF) for time, side in zip(graph.measure(sides), sides, strict=True)]


def _sweep(graph: _CutGraph) -> list[tuple[float, Floats, str]]:
    """Return the best cut along each of the first eigenvectors of the Laplacian."""
    count = len(graph.gbps)
    laplacian = np.diag(graph.gbps.sum(axis=1)) - graph.gbps
    _, vectors = np.linalg.eigh(laplacian)
    found = []
    for vector in vectors[:, 1 : 1 + _EIGENVECTORS].T:
        order = np.argsort(vector, kind="stable")
        gbps, sent = graph.gbps[np.ix_(order, order)], graph.bytes[np.ix_(order, order)]
        within = np.cumsum(2 * np.tril(gbps).sum(axis=1))
        speed = np.cumsum(gbps.sum(axis=1)) - within
        inner = np.cumsum(np.tril(sent).sum(axis=1) + np.tril(sent.T, -1).sum(axis=1))
        most = np.maximum(np.cumsum(sent.sum(axis=1)), np.cumsum(sent.sum(axis=0))) - inner
        times = np.where(speed[:-1] > 1e-9, most[:-1] / np.maximum(speed[:-1], 1e-9), 0.0)
        best = int(times.argmax())
        side = np.zeros(count)
        side[order[: best + 1]] = 1
        found.append((float(times[best]), side, SWEEP))
    return found
