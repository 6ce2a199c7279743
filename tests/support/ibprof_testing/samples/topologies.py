# SPDX-License-Identifier: Apache-2.0
"""Synthetic topologies, and their delays as measured perfectly or with errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

import networkx as nx
import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

ARCS = """{"method": "made", "directed": true, "hosts": ["n0", "n1", "n2", "<b>n3"], "switches": [], "edges": [
{"a": "n0", "b": "n1", "latency_us": 1, "support": null, "probability": 1.0},
{"a": "n1", "b": "n0", "latency_us": 2, "support": null, "probability": 0.5},
{"a": "n1", "b": "n2", "latency_us": 3, "support": null, "probability": 0.25},
{"a": "<b>n3", "b": "n2", "latency_us": 4, "support": null, "probability": 0.75}], "notes": [], "cannot_tell": []}"""
"""A topology as a file has it: two links that lead one way, one that leads both."""


@dataclass(frozen=True)
class Made:
    """A topology; hosts are 0 .. hosts - 1, switches are strings."""

    hosts: int
    graph: nx.Graph
    overhead: float = 0.0

    def delays(self) -> Matrix:
        """Seconds, [host, host]."""
        lengths = dict(nx.all_pairs_dijkstra_path_length(self.graph, weight="us"))
        matrix = np.array([[lengths[a][b] for b in range(self.hosts)] for a in range(self.hosts)])
        matrix += self.overhead
        np.fill_diagonal(matrix, 0.0)
        return matrix * 1e-6

    @property
    def is_direct(self) -> bool:
        return bool(self.graph.number_of_nodes() == self.hosts)

    def splits(self) -> set[frozenset[int]]:
        """Return the hosts that each link separates from host 0, if both sides have two or more hosts."""
        found = set()
        for edge in list(self.graph.edges):
            data = self.graph.edges[edge]
            self.graph.remove_edge(*edge)
            near = nx.node_connected_component(self.graph, 0)
            self.graph.add_edge(*edge, **data)
            far = frozenset(host for host in range(self.hosts) if host not in near)
            if 1 < len(far) < self.hosts - 1:
                found.add(far)
        return found

    def edges(self) -> set[tuple[int, int]]:
        """The links of a direct network."""
        return {(min(edge), max(edge)) for edge in self.graph.edges}


def disturb(matrix: Matrix, noise: float, seed: int, wrong: float = 0.0) -> Matrix:
    """Multiply each pair's delay by a lognormal error, and a share of them by 2 to 4, or by a quarter to a half."""
    draw = np.random.default_rng(seed)
    hosts = len(matrix)
    a, b = np.triu_indices(hosts, 1)
    factor = np.exp(noise * draw.standard_normal(len(a)))
    far = np.exp(np.log(2) * (1 + draw.random(len(a))) * np.where(draw.random(len(a)) < 0.75, 1, -1))
    factor *= np.where(draw.random(len(a)) < wrong, far, 1.0)
    disturbed = matrix.copy()
    disturbed[a, b] *= factor
    disturbed[b, a] = disturbed[a, b]
    return disturbed


def star(hosts: int) -> Made:
    return _attach(hosts, [("s", hosts)], [])


def tree(*branches: int, link_us: tuple[float, ...] = ()) -> Made:
    """The root has branches[0] children and so on; link_us from the top, 1 each if left out."""
    lengths = link_us or (1.0,) * len(branches)
    graph = nx.Graph()
    level, hosts = ["s"], 0
    for depth, (count, length) in enumerate(zip(branches, lengths, strict=True)):
        below: list[str] = []
        for parent in level:
            for child in range(count):
                name: str | int = f"{parent}.{child}"
                if depth == len(branches) - 1:
                    name, hosts = hosts, hosts + 1
                else:
                    below.append(str(name))
                graph.add_edge(parent, name, us=length)
        level = below
    return Made(hosts, graph)


def two_levels(hosts: int) -> Made:
    leaves = {16: 4, 64: 8, 256: 16}[hosts]
    return tree(leaves, hosts // leaves)


def three_levels(hosts: int) -> Made:
    return tree(*{16: (2, 2, 4), 64: (4, 4, 4), 256: (4, 8, 8)}[hosts])


def director(hosts: int) -> Made:
    """Edge switches on the line cards of one big switch, which lie near one another."""
    return tree(*{16: (2, 2, 4), 64: (4, 4, 4), 256: (8, 4, 8)}[hosts], link_us=(0.4, 1.0, 1.0))


def line(hosts: int) -> Made:
    """Switches in a row."""
    switches = {16: 4, 64: 8, 256: 16}[hosts]
    each = hosts // switches
    return _attach(
        hosts, [(f"s{k}", each) for k in range(switches)], [(f"s{k}", f"s{k + 1}") for k in range(switches - 1)]
    )


def mixed_speeds(hosts: int) -> Made:
    """Two levels, every third host on a link of twice the latency, and one slow uplink."""
    made = two_levels(hosts)
    for host in range(0, hosts, 3):
        (switch,) = made.graph[host]
        made.graph.edges[host, switch]["us"] = 2.0
    made.graph.edges["s", "s.1"]["us"] = 2.0
    return made


def torus(*sizes: int, overhead: float = 1.0, hop: float = 0.1) -> Made:
    """Hosts that are linked with their neighbours; what a message costs once, and a hop more, in microseconds."""
    places = list(product(*(range(size) for size in sizes)))
    number = {place: index for index, place in enumerate(places)}
    graph = nx.Graph()
    for place in places:
        for axis, size in enumerate(sizes):
            neighbour = (*place[:axis], (place[axis] + 1) % size, *place[axis + 1 :])
            if neighbour != place:
                graph.add_edge(number[place], number[neighbour], us=hop)
    return Made(len(places), graph, overhead)


def torus_of(hosts: int) -> Made:
    return torus(*{16: (4, 4), 64: (4, 4, 4), 256: (8, 8, 4)}[hosts])


def switched_torus(width: int, height: int, hosts: int = 2) -> Made:
    """Switches that are linked with their neighbours, with some hosts on each."""
    places = list(product(range(width), range(height)))
    links = {
        (min(ends), max(ends))
        for x, y in places
        for across, down in (((x + 1) % width, y), (x, (y + 1) % height))
        for ends in [(f"t{x}{y}", f"t{across}{down}")]
    }
    return _attach(hosts * len(places), [(f"t{x}{y}", hosts) for x, y in places], sorted(links))


def _attach(hosts: int, switches: Iterable[tuple[str, int]], links: Iterable[tuple[str, str]]) -> Made:
    graph = nx.Graph()
    host = 0
    for name, count in switches:
        for _ in range(count):
            graph.add_edge(name, host, us=1.0)
            host += 1
    graph.add_edges_from(links, us=1.0)
    assert host == hosts
    return Made(hosts, graph)


SHAPES: dict[str, Callable[[int], Made]] = {
    "2 levels": two_levels,
    "3 levels": three_levels,
    "director": director,
    "line": line,
    "star": star,
    "mixed speeds": mixed_speeds,
    "torus": torus_of,
}
