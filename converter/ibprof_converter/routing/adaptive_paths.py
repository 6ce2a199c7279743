# SPDX-License-Identifier: Apache-2.0
"""Find the link directions that adaptive switches may choose for each destination, as graphs without cycles.

With a `.far` file, a switch chooses among the ports of the LID's group. Without a `.far` file, it chooses among its
ports on shortest paths (minimal ports). A class consists of destinations for which each switch has the same choices;
usually the hosts of one leaf switch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import LIDS
from ibprof_converter.fabric.graph_search import count_hops
from ibprof_converter.routing.subnet_routes import NONE, IndexedNetwork
from ibprof_converter.routing.tables import NO_GROUP, UNREACHABLE, AdaptiveRouting, LidState

Integers = npt.NDArray[np.integer]

_BATCH = 1 << 21
"""Approximate number of choices in a batch."""

_MOST_HOPS = 64

_GROUPS = 1 << 20
"""The choice of a switch for a LID is a code.

A code below `_STATIC` is the number of a static port. All other codes are `_STATIC` plus the number of a group, from
which fill levels choose a port. If `_GROUPS` is also added, a hash of the flow chooses the port.
"""
_STATIC = 256


_NO_EDGE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class SwitchEdges:
    """Link directions between switches, called edges: index 2 * link + end, sending switch, receiving switch."""

    end: npt.NDArray[np.intp]
    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]

    @classmethod
    def of(cls, network: IndexedNetwork) -> SwitchEdges:
        """Return the link directions between the switches of a network."""
        switch = network.switch_of[network.fabric.link_node.ravel()]
        other = network.switch_of[network.fabric.link_node[:, ::-1].ravel()]
        end = np.flatnonzero((switch != NONE) & (other != NONE) & (switch != other))
        return cls(end, switch[end], other[end])


@dataclass(frozen=True, slots=True)
class Choices:
    """Egress ports that packets to some classes of destinations may choose, in the order of the packets' paths.

    Attributes:
        classes: int64 [c].
        sender, receiver: int64 [choice], c * switches + switch, for the sending and the receiving switch.
        edge: int64 [choice], index into `SwitchEdges`.
        hashed: bool [choice], true if a hash of the flow chooses the port; false if fill levels do.
        steps: index of each step's first choice, then the number of choices. A step consists of successive choices.
            All choices that lead to a switch are in earlier steps than the choices of the switch itself.
    """

    classes: npt.NDArray[np.int64]
    sender: npt.NDArray[np.int64]
    receiver: npt.NDArray[np.int64]
    edge: npt.NDArray[np.int64]
    hashed: npt.NDArray[np.bool_]
    steps: tuple[int, ...]

    def take(self, kept: npt.NDArray[np.bool_]) -> Choices:
        """Return the choices where `kept` is true, in the same order."""
        before = np.concatenate([[0], np.cumsum(kept)])
        return Choices(
            self.classes,
            self.sender[kept],
            self.receiver[kept],
            self.edge[kept],
            self.hashed[kept],
            tuple(before[list(self.steps)].tolist()),
        )


class AdaptivePaths:
    """Choices of the switches of one subnet.

    Args:
        adaptive: groups of ports from a `.far`. If None: all switches choose among their minimal egress ports.

    Attributes:
        class_of_lid: int32 [LIDS], class of each LID; `NONE` for LIDs without a port.
        target: int32 [class], the switch to which the class's destinations are cabled.
    """

    def __init__(self, network: IndexedNetwork, adaptive: AdaptiveRouting | None = None) -> None:
        self.network = network
        self.edges = SwitchEdges.of(network)
        self.switches = len(network.switch_node)
        self.is_grouped = adaptive is not None
        switch_of_lid = find_flow_ports(network, np.arange(LIDS)).switch
        if adaptive is None:
            self.class_of_lid = switch_of_lid
            self.target = np.arange(self.switches, dtype=np.int32)
            return
        lids = np.flatnonzero(switch_of_lid != NONE)
        code = self._code_choices(adaptive, lids)
        target = switch_of_lid[lids]
        code[target, np.arange(len(lids))] = 0  # no choice: the LID's port is cabled to this switch
        columns, of_lid = np.unique(np.vstack([target[np.newaxis], code]), axis=1, return_inverse=True)
        self.class_of_lid = np.full(LIDS, NONE, np.int32)
        self.class_of_lid[lids] = of_lid.ravel()
        self.target = columns[0].astype(np.int32)
        self._code = columns[1:]

    @cached_property
    def distance(self) -> npt.NDArray[np.float64]:
        """Number of links between switches: float64 [switch + 1, switch + 1], inf without a path.

        The last row and the last column are for the index `NONE`.
        """
        switches = self.switches + 1
        hops = count_hops(switches, np.column_stack([self.edges.source, self.edges.target]), np.arange(switches))
        return np.where(hops < 0, np.inf, hops)

    def batches(self, classes: npt.NDArray[np.integer]) -> Iterator[Choices]:
        """Yield the choices for classes of destinations, in batches of classes."""
        size = max(1, _BATCH // max(len(self.edges.end), 1))
        for start in range(0, len(classes), size):
            yield self._find_choices(np.asarray(classes[start : start + size], np.int64))

    def minimal(self, target: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return pairs of an index into `target` and an edge that leads one link nearer to this target."""
        near = self.distance[target][:, self.edges.target]
        closer = np.isfinite(near) & (near == self.distance[target][:, self.edges.source] - 1)
        of_target, edge = np.nonzero(closer)
        return of_target.astype(np.int64), edge.astype(np.int64)

    def _find_choices(self, classes: npt.NDArray[np.int64]) -> Choices:
        target = self.target[classes]
        if not self.is_grouped:
            of_class, edge = self.minimal(target)
            return self._order(classes, of_class, edge, np.zeros(len(edge), np.bool_))
        of_class, edge, hashed = self._allowed(classes)
        choices = self._order(classes, of_class, edge, hashed)
        cyclic = np.flatnonzero(self._cyclic(choices, classes))
        if not len(cyclic):
            return choices
        # If the choices of a class have a cycle, each group keeps only its ports on shortest paths (minimal ports). A
        # group without minimal ports gets all minimal ports of its switch.
        kept = ~np.isin(of_class, cyclic)
        least_class, least_edge = self.minimal(target[cyclic])
        least_class = cyclic[least_class]
        key = least_class * len(self.edges.end) + least_edge
        in_group = np.isin(key, of_class * len(self.edges.end) + edge)
        node = least_class * self.switches + self.edges.source[least_edge]
        has_any = np.isin(node, node[in_group])
        least = in_group | ~has_any
        return self._order(
            classes,
            np.concatenate([of_class[kept], least_class[least]]),
            np.concatenate([edge[kept], least_edge[least]]),
            np.concatenate([hashed[kept], np.zeros(int(least.sum()), np.bool_)]),
        )

    def _order(
        self,
        classes: npt.NDArray[np.int64],
        of_class: npt.NDArray[np.int64],
        edge: npt.NDArray[np.int64],
        hashed: npt.NDArray[np.bool_],
    ) -> Choices:
        """Return the choices that reach the target; senders with the longest paths come first."""
        switches = self.switches
        sender = of_class * switches + self.edges.source[edge]
        receiver = of_class * switches + self.edges.target[edge]
        target = np.arange(len(classes)) * switches + self.target[classes]
        arrives = np.zeros(len(classes) * switches, np.bool_)
        arrives[target] = True
        own = np.isin(sender, target)
        while True:
            more = sender[arrives[receiver] & ~own]
            if arrives[more].all():
                break
            arrives[more] = True
        kept = arrives[receiver] & ~own
        sender, receiver, edge, hashed = sender[kept], receiver[kept], edge[kept], hashed[kept]
        left = np.zeros(len(arrives), np.int64)
        for _ in range(min(switches, _MOST_HOPS) + 1):
            further = left.copy()
            np.maximum.at(further, sender, left[receiver] + 1)
            if (further == left).all():
                break
            left = further
        order = np.argsort(-left[sender], kind="stable")
        steps_left = left[sender[order]]
        begin = np.flatnonzero(np.diff(steps_left, prepend=steps_left[:1] + 1)) if len(order) else np.zeros(0, np.intp)
        return Choices(
            classes,
            sender[order],
            receiver[order],
            edge[order],
            hashed[order],
            (*begin.tolist(), len(order)),
        )

    def _cyclic(self, choices: Choices, classes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return true for each class of destinations with a cycle of choices: bool [class].

        There is a cycle if a choice leads to a switch whose first choice is in the same step or an earlier step.
        """
        step = np.repeat(np.arange(len(choices.steps) - 1), np.diff(choices.steps))
        first = np.full(len(classes) * self.switches, np.iinfo(np.int64).max)
        np.minimum.at(first, choices.sender, step)
        back = first[choices.receiver] <= step
        cyclic = np.zeros(len(classes), np.bool_)
        cyclic[choices.sender[back] // self.switches] = True
        return cyclic

    # -- groups

    def _code_choices(self, adaptive: AdaptiveRouting, lids: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        """Return the code of each switch's choice for each LID: int64 [switch, LID].

        If no port of a group leads to another switch, the code is the static port.
        """
        network = self.network
        code = np.full((self.switches, len(lids)), UNREACHABLE, np.int64)
        known = lids < network.tables.port.shape[1]
        rows = np.flatnonzero(network.row != NONE)
        code[np.ix_(rows, known)] = network.tables.port[np.ix_(network.row[rows], lids[known])]
        self._choice_edges: dict[tuple[int, int], npt.NDArray[np.int64]] = {}
        edge_at = np.full(2 * network.fabric.links + 1, NONE, np.int64)
        edge_at[self.edges.end] = np.arange(len(self.edges.end))
        guids = network.fabric.node_guid[network.switch_node].tolist()
        row_of = {guid: row for row, guid in enumerate(adaptive.tables.switch_guid.tolist())}
        known = lids < adaptive.group.shape[1]
        for switch, guid in enumerate(guids):
            edges_at = edge_at[network.end_at[int(network.switch_node[switch])]]
            if guid in row_of:
                row = row_of[guid]
                group, state = adaptive.group[row, lids[known]].astype(np.int64), adaptive.state[row, lids[known]]
                for number in np.unique(group[group != NO_GROUP]).tolist():
                    edges = edges_at[list(_first_ports(adaptive, guid, number))]
                    edges = edges[edges != NONE]
                    if not len(edges):
                        group[group == number] = NO_GROUP
                        continue
                    for hashed in (0, _GROUPS):
                        self._choice_edges[switch, number + _STATIC + hashed] = edges
                coded = group + _STATIC + _GROUPS * (state == LidState.HASHED)
                code[switch, known] = np.where(group == NO_GROUP, code[switch, known], coded)
            for port in np.unique(code[switch][code[switch] < _STATIC]).tolist():
                edge = edges_at[[port]]
                self._choice_edges[switch, port] = edge[edge != NONE]
        return code

    def _allowed(
        self, classes: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return the choices that groups and tables allow: class, edge, and true if a hash chooses."""
        of_class, edges, hashed = [], [], []
        for number, each in enumerate(classes.tolist()):
            codes = self._code[:, each].tolist()
            for switch, code in enumerate(codes):
                edge = self._choice_edges.get((switch, code), _NO_EDGE)
                if len(edge):
                    of_class.append(np.full(len(edge), number))
                    edges.append(edge)
                    hashed.append(np.full(len(edge), code >= _GROUPS))
        if not edges:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return np.concatenate(of_class), np.concatenate(edges), np.concatenate(hashed)


def _first_ports(adaptive: AdaptiveRouting, guid: int, group: int) -> tuple[int, ...]:
    """Return the ports of the first sub-group that is not empty."""
    parts = adaptive.groups.get((guid, group), ())
    return next((each.ports for each in parts if each.ports), ())


@dataclass(frozen=True, slots=True)
class FlowPorts:
    """For each LID: its port, the index of the port's switch, and the two link directions between port and switch."""

    port: npt.NDArray[np.int32]
    switch: npt.NDArray[np.int32]
    out: npt.NDArray[np.int32]
    into: npt.NDArray[np.int32]


def find_flow_ports(network: IndexedNetwork, lid: Integers) -> FlowPorts:
    """Return the port of each LID, with its switch and its link directions."""
    fabric = network.fabric
    port = np.where((lid >= 0) & (lid < LIDS), fabric.lid_port[np.clip(lid, 0, LIDS - 1)], NONE).astype(np.int32)
    node = np.append(fabric.port_node, np.int32(NONE))[port]
    number = np.append(fabric.port_number, np.int32(0))[port]
    own = np.where(node == NONE, NONE, network.switch_of[node])
    out = np.where((node == NONE) | (own != NONE), NONE, network.end_at[node, number]).astype(np.int32)
    beyond = np.where(out == NONE, NONE, network.next_node[out])
    switch = np.where(own != NONE, own, np.where(beyond == NONE, NONE, network.switch_of[beyond]))
    return FlowPorts(port, switch.astype(np.int32), out, np.where(out == NONE, NONE, out ^ 1).astype(np.int32))
