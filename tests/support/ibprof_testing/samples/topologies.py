# SPDX-License-Identifier: Apache-2.0
"""Synthetic topologies, and their delays with or without errors."""

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
"""The text of a topology file with two one-way links and one two-way link."""


@dataclass(frozen=True)
class Made:
    """A topology. In the graph, hosts are the numbers 0 .. hosts - 1, and switches are strings."""

    hosts: int
    graph: nx.Graph
    overhead: float = 0.0

    def delays(self) -> Matrix:
        """Return the delays without errors: [host, host], in seconds."""
        lengths = dict(nx.all_pairs_dijkstra_path_length(self.graph, weight="us"))
        matrix = np.array([[lengths[a][b] for b in range(self.hosts)] for a in range(self.hosts)])
        matrix += self.overhead
        np.fill_diagonal(matrix, 0.0)
        return matrix * 1e-6

    @property
    def is_direct(self) -> bool:
        return bool(self.graph.number_of_nodes() == self.hosts)

    def splits(self) -> set[frozenset[int]]:
        """Return the hosts beyond each link, seen from host 0; each side must have two or more hosts."""
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
        """Return the links of a direct network."""
        return {(min(edge), max(edge)) for edge in self.graph.edges}


def disturb(matrix: Matrix, noise: float, seed: int, wrong: float = 0.0) -> Matrix:
    """Multiply each delay by a lognormal error. Multiply or divide a fraction `wrong` of the delays by 2 to 4."""
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
    """Return a tree. Nodes of level i have branches[i] children, over links of link_us[i] µs (1 µs by default)."""
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
    """Return hosts on edge switches, linked to the line cards of a big switch with short links inside."""
    return tree(*{16: (2, 2, 4), 64: (4, 4, 4), 256: (8, 4, 8)}[hosts], link_us=(0.4, 1.0, 1.0))


def line(hosts: int) -> Made:
    """Return hosts on switches that form a row."""
    switches = {16: 4, 64: 8, 256: 16}[hosts]
    each = hosts // switches
    return _attach(
        hosts, [(f"s{k}", each) for k in range(switches)], [(f"s{k}", f"s{k + 1}") for k in range(switches - 1)]
    )


def mixed_speeds(hosts: int) -> Made:
    """Return a tree of two levels. Every third host's link has twice the latency, and one uplink is slow."""
    made = two_levels(hosts)
    for host in range(0, hosts, 3):
        (switch,) = made.graph[host]
        made.graph.edges[host, switch]["us"] = 2.0
    made.graph.edges["s", "s.1"]["us"] = 2.0
    return made


def torus(*sizes: int, overhead: float = 1.0, hop: float = 0.1) -> Made:
    """Return hosts on a torus. A message takes `overhead` µs once, and `hop` µs for each hop."""
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
    """Return switches on a torus, with `hosts` hosts on each."""
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
