# SPDX-License-Identifier: Apache-2.0
"""Topologies from few pairs: inferred from hosts of which all pairs were measured, to which the others are attached."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import shortest_path

from ibprof_lab.topology.infer.candidate import FLOOR, Floats
from ibprof_lab.topology.infer.residual_pattern import OUTLYING
from ibprof_lab.topology.model.inferred_topology import InferredTopology

_FEWEST = 16
"""Hosts of which all pairs must have been measured."""

_MOST_MEASURED = 0.5
"""Share of the pairs above which all hosts are inferred at once."""

_CAUTION = 5.0
"""Log-likelihood by which a switch must explain a host's delays better than another one: a factor of 150."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Hosts attached to an inferred topology.

    Attributes:
        topology: with all hosts.
        undecided: int [k], hosts that may as well be on another switch.
        outlying: int [pair, 2], delays of attached hosts that deviate too far.
    """

    topology: InferredTopology
    undecided: npt.NDArray[np.integer]
    outlying: npt.NDArray[np.integer]


def find_complete_hosts(seconds: npt.NDArray[np.floating]) -> npt.NDArray[np.integer] | None:
    """Return hosts of which all pairs were measured, where few of all pairs were; else None.

    The host with the fewest measured pairs among those left goes first.

    Args:
        seconds: [n, n], nan where not measured.
    """
    measured = seconds > 0
    hosts = len(seconds)
    if measured.sum() > _MOST_MEASURED * hosts * (hosts - 1):
        return None
    left = np.ones(hosts, dtype=bool)
    degree = measured.sum(axis=1).astype(np.int64)
    while left.any():
        worst = int(np.argmin(np.where(left, degree, hosts)))
        if degree[worst] == left.sum() - 1:
            break
        left[worst] = False
        degree -= measured[worst]
    found = np.flatnonzero(left)
    return found if _FEWEST <= len(found) < hosts else None


def attach_hosts(
    inner: InferredTopology, core: npt.NDArray[np.integer], hosts: tuple[str, ...], seconds: npt.NDArray[np.floating]
) -> Attachment:
    """Attach each other host to the switch that explains its delays best.

    Args:
        inner: the topology of the core; each of its hosts is on a switch.
        core: int [k], its hosts' numbers.
        hosts: a name each.
        seconds: [n, n], delays of all hosts, nan where not measured.
    """
    count, size = len(hosts), len(core)
    home = np.full(count, -1)
    link = np.full(count, np.nan)
    for (a, b), latency in zip(inner.edge.tolist(), inner.latency_seconds.tolist(), strict=True):
        if a < size <= b:
            home[core[a]], link[core[a]] = b - size, latency
    fit = _Fit(inner, home, link, seconds)
    others = np.setdiff1d(np.arange(count), core)
    waiting = set(others.tolist())
    while waiting:
        # A host whose nearest peers have no switch yet would be attached to any.
        decided = {host for host in sorted(waiting) if fit.attach(host, only_if_certain=True)}
        if not decided:
            break
        waiting -= decided
    for host in sorted(waiting):
        fit.attach(host)
    undecided = np.array([host for host in others.tolist() if not fit.attach(host)], np.int64)
    edges = np.concatenate([
        np.stack([np.arange(count), count + home], axis=1),
        inner.edge[inner.edge[:, 0] >= size] + (count - size),
    ])  # fmt: skip
    is_inner = inner.edge[:, 0] >= size
    support = np.full(count, np.nan)
    support[core[inner.edge[~is_inner][:, 0]]] = inner.support[~is_inner]
    topology = replace(
        inner,
        hosts=hosts,
        edge=edges.astype(np.int32),
        latency_seconds=np.concatenate([link, inner.latency_seconds[is_inner]]),
        support=np.concatenate([support, inner.support[is_inner]]),
        probability=np.ones(len(edges)),
    )
    return Attachment(topology, undecided, _find_outlying(topology, others, seconds, fit.error))


class _Fit:
    """Switches of hosts, by the delays to hosts that have one.

    Args:
        inner: the topology of the core.
        home, link: switch of each host, -1 for none yet, and latency of its link; changed by `attach`.
        seconds: [n, n].
    """

    def __init__(
        self,
        inner: InferredTopology,
        home: npt.NDArray[np.int64],
        link: Floats,
        seconds: npt.NDArray[np.floating],
    ) -> None:
        size = len(inner.hosts)
        self.home, self.link, self.seconds = home, link, seconds
        self.error = max(inner.noise, FLOOR)
        self.overhead = inner.overhead_seconds
        self.distance: Floats = shortest_path(inner.adjacency(), directed=False)[size:, size:]
        on_switch = [link[home == switch] for switch in range(len(inner.switches))]
        self.usual = np.array([links.mean() if len(links) else np.nan for links in on_switch])

    def attach(self, host: int, only_if_certain: bool = False) -> bool:
        """Attach a host to the switch that explains its delays best; return whether no other does about as well."""
        peers = np.flatnonzero((self.seconds[host] > 0) & (self.home >= 0))
        explained = self.overhead + self.usual[:, None] + self.distance[:, self.home[peers]] + self.link[peers]
        residual = np.log(self.seconds[host, peers] / explained) / self.error
        cost = np.minimum(residual**2, OUTLYING**2).sum(axis=1) / 2
        cost[np.isnan(self.usual)] = np.inf
        best = int(np.argmin(cost))
        is_certain = bool(np.sum(cost < cost[best] + _CAUTION) == 1) and len(peers) > 0
        if is_certain or not only_if_certain:
            self.home[host], self.link[host] = best, self.usual[best]
        return is_certain


def _find_outlying(
    topology: InferredTopology, others: npt.NDArray[np.integer], seconds: npt.NDArray[np.floating], error: float
) -> npt.NDArray[np.integer]:
    explained = np.where(seconds > 0, topology.explain_delays(), 1.0)
    residual = np.log(np.where(seconds > 0, seconds, 1.0)[others]) - np.log(explained[others])
    rows, columns = np.nonzero(np.abs(residual) > OUTLYING * error)
    pairs = np.sort(np.stack([others[rows], columns], axis=1), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
