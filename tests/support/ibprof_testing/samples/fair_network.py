# SPDX-License-Identifier: Apache-2.0
"""A simulated network with fair shares of links, for tests without real streams."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace

import networkx as nx
import numpy as np

from ibprof_lab.topology.throughput.pair_jobs import RoundMeasurement
from ibprof_testing.samples.topologies import Made


def with_rates(made: Made, host: float, between: float) -> Made:
    """Return the topology with rates: `host` for hosts' links, `between` for all other links, in Gb/s."""
    for one, other, data in made.graph.edges(data=True):
        data["gbps"] = host if isinstance(one, int) or isinstance(other, int) else between
    return made


class FairNetwork:
    """Replacement for `ConcurrentStreams`: streams get max-min fair rates. Links have a capacity in each direction.

    Args:
        graph: the network; each edge has `gbps`.
        limits: switch -> its total capacity, Gb/s.
    """

    def __init__(self, graph: nx.Graph, limits: dict[str, float] | None = None) -> None:
        self.graph, self.limits = graph, limits or {}
        self.comm = SimpleNamespace(rank=0, bcast=lambda value: value)
        self.stopped = False
        self.calls: list[list[tuple[int, int]]] = []

    def measure(self, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
        self.calls.append(list(pairs))
        paths = [nx.shortest_path(self.graph, *pair, weight="us") for pair in pairs]
        users: dict[object, set[int]] = {}
        for row, path in enumerate(paths):
            for use in (*pairwise(path), *(node for node in path if node in self.limits)):
                users.setdefault(use, set()).add(row)
        room = {use: self.limits[use] if use in self.limits else self.graph.edges[use]["gbps"] for use in users}
        rates = np.zeros(len(pairs))
        while users:
            use = min(users, key=lambda each: room[each] / len(users[each]))
            share = room[use] / len(users[use])
            for row in list(users[use]):
                rates[row] = share
                for other in list(users):
                    if row in users[other]:
                        room[other] -= share
                        users[other].discard(row)
                        if not users[other]:
                            del users[other]
        return rates / 8e-9


def rounds_on(network: FairNetwork, hosts: int) -> RoundMeasurement:
    """Return a `RoundMeasurement` on a network with one rank on each host."""
    return RoundMeasurement(network, range(hosts), 1)  # type: ignore[arg-type]
