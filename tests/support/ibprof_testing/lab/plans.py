# SPDX-License-Identifier: Apache-2.0
"""Plans of networks that the lab builds: hosts, switches, and cables with their delays and rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import networkx as nx


class Cable(NamedTuple):
    """A cable between two nodes.

    Attributes:
        a, b: names of the nodes. In a host's cable, `a` is the host.
        microseconds: delay of each frame; 0 for a plain cable.
        mbit: rate limit of each direction, Mb/s; 0 for no limit.
    """

    a: str
    b: str
    microseconds: float = 0.0
    mbit: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A network.

    Attributes:
        hosts: names of the hosts, in the order of the ranks.
        cables: cables of the network. Each host has exactly one cable.
    """

    hosts: tuple[str, ...]
    cables: tuple[Cable, ...]

    @property
    def switches(self) -> tuple[str, ...]:
        """Return all nodes that are not hosts."""
        return tuple(dict.fromkeys(end for cable in self.cables for end in cable[:2] if end not in self.hosts))

    def graph(self) -> nx.Graph:
        """Return the network as a graph."""
        graph = nx.Graph()
        for cable in self.cables:
            graph.add_edge(cable.a, cable.b, cable=cable)
        return graph

    def splits(self) -> set[frozenset[str]]:
        """Return the hosts beyond each cable, seen from the first host.

        Cables with fewer than two hosts on a side are left out, because delays do not show them.
        """
        found = set()
        for cable in self.cables:
            graph = self.graph()
            graph.remove_edge(cable.a, cable.b)
            near = nx.node_connected_component(graph, self.hosts[0])
            far = frozenset(host for host in self.hosts if host not in near)
            if 1 < len(far) < len(self.hosts) - 1:
                found.add(far)
        return found

    def find_cable(self, one: str, other: str) -> Cable:
        """Return the cable between two nodes."""
        return next(each for each in self.cables if {each.a, each.b} == {one, other})

    def slow(self, one: str, other: str, microseconds: float) -> Plan:
        """Return a plan with a longer delay of the cable between two nodes."""
        old = self.find_cable(one, other)
        return self._with(old, old._replace(microseconds=old.microseconds + microseconds))

    def plug(self, host: str, switch: str) -> Plan:
        """Return a plan with a host moved to another switch."""
        old = next(each for each in self.cables if each.a == host)
        return self._with(old, old._replace(b=switch))

    def _with(self, old: Cable, new: Cable) -> Plan:
        return replace(self, cables=tuple(new if each is old else each for each in self.cables))


HOST_US, HOST_MBIT = 200.0, 200.0
"""Delay in µs and rate in Mb/s of hosts' cables.

The kernel and a busy processor add less than this delay, and two processors move packets faster than this rate.
"""


def make_plan(leaves: Mapping[str, int], between: Iterable[Cable]) -> Plan:
    """Return a plan with hosts node1, node2, ...; `leaves` contains the number of hosts on each leaf switch."""
    cables: list[Cable] = []
    for leaf, count in leaves.items():
        first = len(cables) + 1
        cables += [Cable(f"node{number}", leaf, HOST_US, HOST_MBIT) for number in range(first, first + count)]
    return Plan(tuple(cable.a for cable in cables), (*cables, *between))


def one_switch(hosts: int) -> Plan:
    """Return a plan of hosts with plain cables to one switch."""
    names = tuple(f"node{number + 1}" for number in range(hosts))
    return Plan(names, tuple(Cable(name, "switch") for name in names))


TREE = make_plan(
    {"leaf1": 2, "leaf2": 2, "leaf3": 2, "leaf4": 2},
    [
        Cable("leaf1", "pod1", 300, 400),
        Cable("leaf2", "pod1", 300, 400),
        Cable("leaf3", "pod2", 300, 400),
        Cable("leaf4", "pod2", 300, 400),
        Cable("pod1", "pod2", 300, 400),
    ],
)
LINE = make_plan(
    {"switch1": 2, "switch2": 2, "switch3": 2, "switch4": 2},
    [Cable(f"switch{number}", f"switch{number + 1}", 300, 400) for number in (1, 2, 3)],
)
FAULTY = make_plan({"left": 3, "right": 3}, [Cable("left", "right", 300, 100)]).slow("node6", "right", 300)
STAR = make_plan({"switch": 8}, [])

PLANS = {"tree": TREE, "line": LINE, "faulty": FAULTY, "star": STAR}
