# SPDX-License-Identifier: Apache-2.0
"""Published inference methods for comparison: the methods of Bufe, and of Bannikov and Salnikov.

Bufe's method links two hosts if every path over other links is longer. The method then replaces each clique of links
with equal latencies by a switch.

Bannikov and Salnikov's method finds arcs between processes. The probability of an arc is the fraction of message
lengths with the arc. Bannikov and Salnikov's method finds no switches: in a hierarchical network nearly all pairs
become arcs. Delays may be asymmetric.

Source: A. Bufe, "Automatic Analysis of a Supercomputer's Topology and Performance Characteristics", thesis, University
of Hamburg, 2014, sections 1.5 and 2.2. P. S. Bannikov, A. N. Salnikov, on recognising the topology of a cluster's
communication environment by load tests (in Russian, 2013). Formula (1) of Bannikov and Salnikov has a misprint, =
instead of <.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import shortest_path

from ibprof.errors import UsageError
from ibprof_lab.topology.infer.direct_networks import find_detours
from ibprof_lab.topology.model.inferred_topology import InferredTopology

Vertex = int
"""Index of a host, or a negative integer for a switch. Unlike sets of names, sets of integers keep a fixed order."""

_LATENCY = "latency"
_ROUNDING = 1e-9

Floats = npt.NDArray[np.float64]
Arcs = npt.NDArray[np.bool_]
_PATH_ROUNDING = 1e-6
LARGEST = 4096


class TookTooLong(Exception):
    """The inference reached its limit of CPU time."""


def is_less(a: float, b: float, epsilon: float) -> bool:
    """Return True if a is less than b by more than the tolerance. Source: equation 1.9."""
    return b - a > max(epsilon, _ROUNDING) * (a + b) / 2


def are_equal(a: float, b: float, epsilon: float) -> bool:
    """Return True if two values are equal within the tolerance."""
    return not is_less(a, b, epsilon) and not is_less(b, a, epsilon)


def build_basic_model(delays: npt.NDArray[np.floating], epsilon: float, until: float = np.inf) -> nx.Graph:
    """Take pairs of hosts in order of increasing delay. Link a pair if each path over earlier links is longer.

    The length of a path from a to b is the delay between a and some neighbour of b, plus the latency of the neighbour's
    link to b.

    Args:
        delays: [n, n], symmetric; nan excludes a pair.
        epsilon: relative tolerance.
        until: limit of this thread's CPU time, seconds; machine load does not change the result.

    Raises:
        TookTooLong: the limit of CPU time was reached.

    Source: algorithm 1, equation 2.2.
    """
    graph = nx.Graph()
    graph.add_nodes_from(range(len(delays)))
    above = np.triu_indices(len(delays), 1)
    values = delays[above]
    for pair in np.argsort(values, kind="stable"):
        latency = float(values[pair])
        if np.isnan(latency):
            break
        if time.thread_time() > until:
            raise TookTooLong
        a, b = int(above[0][pair]), int(above[1][pair])
        near = list(graph[b])
        paths = delays[a, near] + np.array([graph.edges[b, each][_LATENCY] for each in near])
        shortest = float(np.nanmin(paths)) if near and not np.isnan(paths).all() else np.inf
        if shortest == np.inf or is_less(latency, shortest, epsilon):
            graph.add_edge(a, b, latency=latency)
    return graph


def group_latencies(values: Iterable[float], epsilon: float) -> list[float]:
    """Return the smallest latency of each group of roughly equal latencies, ascending."""
    groups: list[float] = []
    for value in sorted(values):
        if not groups or is_less(groups[-1], value, epsilon):
            groups.append(value)
    return groups


def infer_bufe(
    delays: npt.NDArray[np.floating], hosts: Sequence[str], epsilon: float, seconds: float = 30.0
) -> InferredTopology:
    """Infer a topology with Bufe's method.

    Args:
        delays: [n, n], seconds, symmetric.
        hosts: one name per host.
        epsilon: relative tolerance.
        seconds: limit of CPU time, since the number of cliques may grow exponentially. After this time, the function
            returns a partial result, and the topology's `unknown` contains the reason.
    """
    until = time.thread_time() + seconds
    graph = nx.Graph()
    unknown: tuple[str, ...] = ()
    try:
        graph = build_basic_model(delays, epsilon, until)
        _Model(graph, epsilon, until).find_switches()
    except TookTooLong:
        unknown = (
            f"the search for cliques ended after {seconds:g} s without a topology. The number of cliques grows "
            "exponentially if latencies are not clearly equal or different. Try another --epsilon, more "
            "--clique-seconds, or --method auto",
        )
    return _finish(graph, hosts, unknown)


class _Model:
    """Bufe's model: a graph whose cliques are replaced by switches."""

    def __init__(self, graph: nx.Graph, epsilon: float, until: float) -> None:
        self.graph, self._epsilon, self._until = graph, epsilon, until
        self._switches = 0

    def find_switches(self) -> None:
        """Replace all cliques by switches. Source: algorithm 2, with algorithm 3 after each new switch."""
        changed = True
        while changed:
            changed = False
            latencies = [data[_LATENCY] for _, _, data in self.graph.edges(data=True)]
            for latency in group_latencies(latencies, self._epsilon):
                while (clique := self._find_clique(latency)) is not None:
                    self._replace(clique)
                    changed = True

    def _find_clique(self, latency: float) -> list[Vertex] | None:
        """Return the largest clique of hosts whose edges have about the given latency.

        If there is no such clique, return the largest clique of switches, or None.
        """
        alike = {False: nx.Graph(), True: nx.Graph()}
        for a, b, data in self.graph.edges(data=True):
            if (of_switches := _is_switch(a)) == _is_switch(b) and are_equal(data[_LATENCY], latency, self._epsilon):
                alike[of_switches].add_edge(a, b)
        for of_switches in (False, True):
            best: list[Vertex] = []
            for clique in nx.find_cliques(alike[of_switches]):
                if time.thread_time() > self._until:
                    raise TookTooLong
                if len(clique) > len(best) and (len(clique) > 2 or self._makes_three(*clique)):
                    best = clique
            if best:
                return best
        return None

    def _makes_three(self, a: Vertex, b: Vertex) -> bool:
        """Return True if a common neighbour is equally far from a and b: one switch can then join all three."""
        return any(
            are_equal(self.graph.edges[a, each][_LATENCY], self.graph.edges[b, each][_LATENCY], self._epsilon)
            for each in nx.common_neighbors(self.graph, a, b)
        )

    def _replace(self, clique: list[Vertex]) -> None:
        graph = self.graph
        inside = [graph.edges[a, b][_LATENCY] for i, a in enumerate(clique) for b in clique[:i]]
        half = float(np.mean(inside)) / 2
        self._switches += 1
        switch = -self._switches
        graph.remove_edges_from([(a, b) for i, a in enumerate(clique) for b in clique[:i]])
        moved: list[tuple[Vertex, float]] = []
        for other in set.intersection(*(set(graph[each]) for each in clique)):
            paths = [graph.edges[each, other][_LATENCY] for each in clique]
            if are_equal(min(paths), max(paths), self._epsilon):
                graph.remove_edges_from([(each, other) for each in clique])
                moved.append((other, float(np.mean(paths)) - half))
        graph.add_edges_from(((each, switch) for each in clique), latency=half)
        for other, latency in moved:
            graph.add_edge(other, switch, latency=max(latency, 0.0))
        self._rejoin(switch, half)
        self._drop_virtual_edges()

    def _rejoin(self, switch: Vertex, half: float) -> None:
        """Merge the new switch with switches that are linked to it almost without latency. Source: section 2.2.5."""
        graph = self.graph
        for other in [each for each in graph[switch] if _is_switch(each)]:
            # The link's latency is compared with the delay between two hosts of the new switch.
            if graph.edges[switch, other][_LATENCY] <= max(self._epsilon, _ROUNDING) * 2 * half:
                for each, data in list(graph[other].items()):
                    if each != switch and not graph.has_edge(switch, each):
                        graph.add_edge(switch, each, **data)
                graph.remove_node(other)

    def _drop_virtual_edges(self) -> None:
        """Drop edges between switches (algorithm 3) or hosts (table 2.3) if a path over one switch is equally long."""
        graph = self.graph
        to_switches = {
            vertex: {each: data[_LATENCY] for each, data in near.items() if _is_switch(each)}
            for vertex, near in graph.adjacency()
        }
        virtual = []
        for a, b, data in graph.edges(data=True):
            if _is_switch(a) != _is_switch(b):
                continue
            near, far = to_switches[a], to_switches[b]
            paths = [near[switch] + far[switch] for switch in near.keys() & far.keys()]
            if paths and are_equal(data[_LATENCY], min(paths), self._epsilon):
                virtual.append((a, b))
        graph.remove_edges_from(virtual)
        if time.thread_time() > self._until:
            raise TookTooLong


def _is_switch(vertex: Vertex) -> bool:
    return vertex < 0


def _finish(graph: nx.Graph, hosts: Sequence[str], unknown: tuple[str, ...]) -> InferredTopology:
    switches = sorted((vertex for vertex in graph if _is_switch(vertex)), reverse=True)
    number = {switch: len(hosts) + index for index, switch in enumerate(switches)}

    def rows() -> Iterator[tuple[int, int, float]]:
        for a, b, data in graph.edges(data=True):
            first, second = sorted(number.get(each, each) for each in (a, b))
            yield first, second, data[_LATENCY]

    edges = sorted(rows())
    return InferredTopology(
        method="bufe",
        hosts=tuple(hosts),
        switches=tuple(f"switch{index + 1}" for index in range(len(switches))),
        edge=np.array([edge[:2] for edge in edges], np.int32).reshape(-1, 2),
        latency_seconds=np.array([edge[2] for edge in edges], np.float64),
        support=np.full(len(edges), np.nan),
        probability=np.ones(len(edges)),
        unknown=unknown,
    )


def infer_bannikov_salnikov(
    delays: npt.NDArray[np.floating], hosts: Sequence[str], epsilon_s: float = 0.1, epsilon_d: float = 0.5
) -> InferredTopology:
    """Infer a directed graph of processes with Bannikov and Salnikov's method.

    Args:
        delays: [L, n, n] for L message lengths, seconds, nan where not measured.
        hosts: one name per process.
        epsilon_s: an arc of a shared-memory group may be longer than the group's first arc by at most this fraction, 0
            to 0.5.
        epsilon_d: 0 to 1. If the two directions of a pair differ by more than this fraction, only the direction with
            the shorter delay is an arc.

    Raises:
        UsageError: there are more than `LARGEST` processes (the time is O(n^3)).
    """
    count = len(hosts)
    if count > LARGEST:
        raise UsageError(f"--method bannikov-salnikov: expected at most {LARGEST} processes, found {count}")
    present = np.zeros((count, count))
    total = np.zeros((count, count))
    for matrix in delays:
        values = np.where(matrix > 0, matrix, np.inf).astype(np.float64)
        np.fill_diagonal(values, np.inf)
        arcs = find_local_topology(values, epsilon_s, epsilon_d)
        present += arcs
        total[arcs] += values[arcs]
    a, b = np.nonzero(present)
    return InferredTopology(
        method="bannikov-salnikov",
        hosts=tuple(hosts),
        switches=(),
        edge=np.stack([a, b], axis=1).astype(np.int32),
        latency_seconds=total[a, b] / present[a, b],
        support=np.full(len(a), np.nan),
        probability=present[a, b] / max(len(delays), 1),
        directed=True,
    )


def find_local_topology(values: Floats, epsilon_s: float, epsilon_d: float) -> Arcs:
    """Return the arcs for one message length, bool [n, n].

    Args:
        values: float64 [n, n], delays in seconds; inf where not measured and on the diagonal.
        epsilon_s, epsilon_d: as for `infer_bannikov_salnikov`.
    """
    arcs = np.zeros(values.shape, bool)
    _grow_skeleton(values, epsilon_s, arcs)
    _close_cycles(values, arcs)
    with np.errstate(invalid="ignore"):
        arcs &= ~(values > (1 + epsilon_d) * values.T)
    return arcs


def _grow_skeleton(values: Floats, epsilon_s: float, arcs: Arcs) -> None:
    """Stage 2: add the arcs of shared-memory groups, and chains of ever shorter arcs from each group to the next."""
    count = len(values)
    done = np.zeros(count, bool)
    if count < 2 or not np.isfinite(values).any():
        return
    start, second = divmod(int(values.argmin()), count)
    group = _collect([start], float(values[start, second]), values, epsilon_s, done, arcs)
    while not done.all():
        out = np.where(done, np.inf, values[group])
        near, far = divmod(int(out.argmin()), count)
        last = float(out[near, far])
        if not np.isfinite(last):
            far, last = int(np.argmin(done)), np.inf  # no measured path leads to this process
        else:
            _connect(arcs, group[near], far)
        done[far] = True
        reached, inside = far, None
        while True:
            onward = np.where(done, np.inf, values[reached])
            to = int(onward.argmin())
            if not onward[to] < last:
                break
            _connect(arcs, reached, to)
            last = inside = float(onward[to])
            before, reached = reached, to
            done[to] = True
        members = [reached] if inside is None else [before, reached]
        group = members if inside is None else _collect(members, inside, values, epsilon_s, done, arcs)


def _collect(
    members: list[int], first: float, values: Floats, epsilon_s: float, done: npt.NDArray[np.bool_], arcs: Arcs
) -> list[int]:
    """Return a shared-memory group: `members`, and each process whose delay from a member is at most (1 + epsilon_s) *
    `first`."""
    done[members] = True
    todo = list(members)
    group = list(members)
    near = values <= first * (1 + epsilon_s)
    while todo:
        member = todo.pop()
        for other in np.flatnonzero(near[member]).tolist():
            if other in group:
                _connect(arcs, member, other)
            elif not done[other]:
                _connect(arcs, member, other)
                done[other] = True
                group.append(other)
                todo.append(other)
    return group


def _connect(arcs: Arcs, a: int, b: int) -> None:
    arcs[a, b] = arcs[b, a] = True


def _close_cycles(values: Floats, arcs: Arcs) -> None:
    """Stage 3: add each arc that is shorter than every path over a third process.

    These paths consist of measured delays. In the paper, a path consists of arcs that were already added, so that the
    result depends on the order of the processes.
    """
    distance = shortest_path(np.where(np.isfinite(values), values, 0.0), directed=True)
    np.fill_diagonal(distance, np.inf)
    shorter = values * (1 + _PATH_ROUNDING) < find_detours(distance)
    arcs |= shorter & np.isfinite(values)
