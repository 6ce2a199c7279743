# SPDX-License-Identifier: Apache-2.0
"""Compute bounds and estimates of link loads with adaptive routing.

For each packet, an adaptive switch chooses the port of a group by the fill levels of the group's ports. `shared` is the
load of a link if all ports of the group carry equal shares. `most` is the load of the link if all other ports of the
group are always full. The estimate assumes that packets avoid ports that are fuller than others.

The estimate begins with even shares, and changes the shares in a few rounds. In each round, the share of a port falls
if the load of its link, or of the following links, needs a long time. If a buffer at a following link is full, the
buffers before this following link fill too.

In the packet simulation, packets choose among the same ports. benchmarks/adaptive_estimate.py compares the estimate
with the simulation; docs/formats/fabrics.md lists the errors. Private tables, virtual lanes and service levels are not
modelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.routing.adaptive_paths import AdaptivePaths, Choices, Integers, find_flow_ports
from ibprof_converter.routing.subnet_routes import NONE

ROUNDS = 8
EXPONENT = 0.5
BACK_PRESSURE = 0.8
"""The pressure of a link is at least this factor times the mean pressure of the following links.

The pressure of a link is the time of its load, or more if the following links are full. benchmarks/adaptive_estimate.py
fitted the value.
"""

_LEAST_PRESSURE = 0.05

_SETTLED = 1e-3
"""The rounds end when each load changes by at most this share of the largest load."""

_KEPT_CHOICES = 1 << 23
"""If there are more choices than this, each round recomputes them, so that they need no memory."""


@dataclass(frozen=True, slots=True)
class AdaptiveBounds:
    """Loads of link directions with adaptive routing.

    Attributes:
        shared: float64 [link, end], bytes if switches spread traffic evenly over all ports that they may choose.
        most: uint64 [link, end], bytes of all traffic that can use the link direction.
        estimate: float64 [link, end], bytes if packets avoid fuller ports.
        unrouted: bytes of flows without a path.
    """

    shared: npt.NDArray[np.float64]
    most: npt.NDArray[np.uint64]
    estimate: npt.NDArray[np.float64]
    unrouted: int


LidFlows = tuple[Integers, Integers, npt.NDArray[np.uint64]]
"""Source LID, destination LID and bytes of each flow."""


@dataclass(frozen=True, slots=True)
class _Demand:
    """Sums of flows.

    Attributes:
        access: uint64 [link direction], bytes on host links; 0 for links between switches.
        between: uint64 [class + 1, switch + 1], bytes that the hosts of a switch send to the destinations of a class
            (`AdaptivePaths.class_of_lid`).
        unrouted: bytes of flows without a path.
    """

    access: npt.NDArray[np.uint64]
    between: npt.NDArray[np.uint64]
    unrouted: int


def bound_adaptive(paths: AdaptivePaths, parts: Iterable[LidFlows]) -> AdaptiveBounds:
    """Return bounds and an estimate of the load of each link direction.

    Args:
        paths: the egress ports that each switch of the subnet may choose.
        parts: the flows, divided into parts that fit in memory.
    """
    fabric = paths.network.fabric
    demand = _sum_flows(paths, parts)
    most = demand.access.copy()
    batches = _Batches(paths, demand)
    even = batches.spread(np.ones(len(paths.edges.end)))
    for choices in batches.each():
        _add_all(paths, choices, demand.between, most)
    estimate = _estimate(paths, batches, even.load)
    access = demand.access.astype(np.float64)
    shape = (fabric.links, 2)
    loads = []
    for edge_loads in (even.load, estimate):
        load = access.copy()
        load[paths.edges.end] += edge_loads
        loads.append(load.reshape(shape))
    return AdaptiveBounds(loads[0], most.reshape(shape), loads[1], demand.unrouted + even.lost)


def estimate_adaptive(paths: AdaptivePaths, parts: Iterable[LidFlows]) -> npt.NDArray[np.float64]:
    """Return the estimated load of each link direction: float64 [link, end], bytes."""
    demand = _sum_flows(paths, parts)
    batches = _Batches(paths, demand)
    load = demand.access.astype(np.float64)
    load[paths.edges.end] += _estimate(paths, batches, batches.spread(np.ones(len(paths.edges.end))).load)
    return load.reshape(-1, 2)


def _sum_flows(paths: AdaptivePaths, parts: Iterable[LidFlows]) -> _Demand:
    network = paths.network
    access = np.zeros(2 * network.fabric.links, np.uint64)
    between = np.zeros((len(paths.target) + 1, paths.switches + 1), np.uint64)
    unrouted = 0
    for source_lid, destination_lid, amount in parts:
        source, destination = (find_flow_ports(network, lid) for lid in (source_lid, destination_lid))
        apart = source.port != destination.port
        known = (source.switch != NONE) & (destination.switch != NONE)
        joined = known & np.isfinite(paths.distance[source.switch, destination.switch])
        chosen = apart & joined
        for place, end in ((source, source.out), (destination, destination.into)):
            cabled = chosen & (end != NONE) & (place.port != NONE)
            np.add.at(access, end[cabled], amount[cabled])
        crosses = chosen & (source.switch != destination.switch)
        np.add.at(between, (paths.class_of_lid[destination_lid[crosses]], source.switch[crosses]), amount[crosses])
        unrouted += int(amount[apart & ~joined].sum(dtype=np.uint64))
    return _Demand(access, between, unrouted)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Loads after flows were spread over edges (link directions between switches).

    Attributes:
        load: float64 [edge], bytes.
        behind: float64 [edge], mean pressure of the following edges. The pressure of an edge is the time of its load,
            or more if following edges are full.
        lost: bytes of flows whose first switch has no port to the destination.
    """

    load: npt.NDArray[np.float64]
    behind: npt.NDArray[np.float64]
    lost: int


class _Batches:
    """Spreads traffic over the ports that its packets may choose, in batches of destinations."""

    def __init__(self, paths: AdaptivePaths, demand: _Demand) -> None:
        self._paths = paths
        self._between = demand.between
        self._classes = np.flatnonzero(demand.between.any(axis=1))
        self._kept: list[Choices] | None = []
        size = 0
        for choices in paths.batches(self._classes):
            self._kept.append(self._reached(choices))
            size += len(self._kept[-1].edge)
            if size > _KEPT_CHOICES:
                self._kept = None
                break

    def each(self) -> Iterable[Choices]:
        """Yield the choices of each batch, without choices that no flow reaches."""
        if self._kept is not None:
            return self._kept
        return (self._reached(choices) for choices in self._paths.batches(self._classes))

    def spread(self, weight: npt.NDArray[np.float64], pressure: npt.NDArray[np.float64] | None = None) -> _Spread:
        """Spread the flows over the edges. Each switch divides bytes in proportion to the weights of its edges.

        Args:
            weight: float64 [edge].
            pressure: float64 [edge], from which `_Spread.behind` is computed. If None: `behind` is 0.
        """
        edges = len(self._paths.edges.end)
        load, behind = np.zeros(edges), np.zeros(edges)
        lost = 0
        for choices in self.each():
            nodes = len(choices.classes) * self._paths.switches
            of_choice = np.where(choices.hashed, 1.0, weight[choices.edge])
            total = np.bincount(choices.sender, of_choice, nodes)
            share = of_choice / total[choices.sender]
            inflow = self._inflow(choices)
            lost += int(inflow[total == 0].sum())
            for begin, end in zip(choices.steps, choices.steps[1:], strict=False):
                amount = inflow[choices.sender[begin:end]] * share[begin:end]
                load += np.bincount(choices.edge[begin:end], amount, edges)
                inflow += np.bincount(choices.receiver[begin:end], amount, nodes)
            if pressure is not None:
                amount = inflow[choices.sender] * share
                ahead = np.bincount(choices.sender, share * pressure[choices.edge], nodes)
                behind += np.bincount(choices.edge, amount * ahead[choices.receiver], edges)
        return _Spread(load, np.divide(behind, load, out=np.zeros(edges), where=load > 0), lost)

    def _inflow(self, choices: Choices) -> npt.NDArray[np.float64]:
        """Return the bytes that the hosts of each switch send to the destinations of each class."""
        amount = self._between[choices.classes, :-1].astype(np.float64)
        return amount.ravel()

    def _reached(self, choices: Choices) -> Choices:
        reached = self._inflow(choices) > 0
        kept = np.zeros(len(choices.edge), np.bool_)
        for begin, end in zip(choices.steps, choices.steps[1:], strict=False):
            kept[begin:end] = reached[choices.sender[begin:end]]
            reached[choices.receiver[begin:end][kept[begin:end]]] = True
        return choices.take(kept)


def _estimate(paths: AdaptivePaths, batches: _Batches, shared: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the estimated load of each edge: float64 [edge], bytes."""
    seconds_per_byte = 1 / np.repeat(np.nan_to_num(paths.network.fabric.link_gbps, nan=1.0), 2)[paths.edges.end]
    weight, load = np.ones(len(shared)), shared
    pressure = load * seconds_per_byte
    for number in range(ROUNDS):
        largest = np.zeros(paths.switches)
        np.maximum.at(largest, paths.edges.source, pressure)
        usual = largest[paths.edges.source]
        relative = np.divide(pressure, usual, out=np.ones(len(pressure)), where=usual > 0)
        weight = weight * np.maximum(relative, _LEAST_PRESSURE) ** -EXPONENT
        weight /= weight.max(initial=1.0)
        before, spread = load, batches.spread(weight, pressure)
        load = spread.load
        pressure = np.maximum(load * seconds_per_byte, BACK_PRESSURE * spread.behind)
        # Never end after the first round: its pressures do not yet include the following links.
        if number and np.abs(load - before).max(initial=0.0) <= _SETTLED * load.max(initial=0.0):
            break
    return load


def _add_all(
    paths: AdaptivePaths,
    choices: Choices,
    between: npt.NDArray[np.uint64],
    most: npt.NDArray[np.uint64],
) -> None:
    """Add to `most`, for each link direction, the bytes of all flows with a path over the link direction."""
    switches = paths.switches
    bounds = np.searchsorted(np.sort(choices.sender // switches), np.arange(len(choices.classes) + 1))
    by_class = np.argsort(choices.sender // switches, kind="stable")
    for number, each in enumerate(choices.classes.tolist()):
        here = by_class[bounds[number] : bounds[number + 1]]
        edge = choices.edge[here]
        source, target = paths.edges.source[edge], paths.edges.target[edge]
        senders = np.flatnonzero(between[each, :-1])
        amount = between[each, senders]
        passes = np.zeros((switches, len(senders)), np.bool_)
        passes[senders, np.arange(len(senders))] = True
        if paths.is_grouped:
            for one, other in zip(source.tolist(), target.tolist(), strict=True):
                passes[other] |= passes[one]
        else:
            to_here = paths.distance[senders][:, :-1]
            left = paths.distance[:-1, paths.target[each]]
            passes = (to_here + left == paths.distance[senders, paths.target[each]][:, np.newaxis]).T
        coming = np.where(passes, amount, np.uint64(0)).sum(axis=1, dtype=np.uint64)
        np.add.at(most, paths.edges.end[edge], coming[source])
