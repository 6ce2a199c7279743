# SPDX-License-Identifier: Apache-2.0
"""Deadlocks of routes, and virtual lanes that prevent them.

A packet in a link direction's buffer waits for space in the buffer of the next link direction on the packet's route. If
such waits form a cycle of link directions, all buffers of the cycle can fill up. Then the packets in these buffers
never move again.

Source: W. J. Dally and C. L. Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE
Transactions on Computers 36(5), 1987; layers as in T. Skeie, O. Lysne and I. Theiss, "Layered shortest path (LASH)
routing in irregular system area networks", IPDPS 2002.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_converter.lab import BY_LANES, CYCLE, FREE
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.subnet_routes import NONE
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, find_minimal_ports, index_network

Ints = npt.NDArray[np.int64]

LANES = 15
"""Number of virtual lanes of InfiniBand that carry data."""


def find_cycle(network: SimulatedNetwork, adaptive: bool = False) -> list[int]:
    """Return a cycle of link directions, each waiting for the next; an empty list if there is no cycle.

    Args:
        adaptive: True to check all shortest routes, False to check the routes of forwarding tables.
    """
    return _find_cycle(network, _find_adaptive_dependencies(network) if adaptive else _find_dependencies(network))


def classify_deadlock(subnets: Sequence[Subnet], lanes: int | None = None) -> str:
    """Classify routes between hosts: free of deadlocks on one virtual lane, free by several lanes, or able to deadlock.

    Args:
        subnets: subnets with forwarding tables.
        lanes: number of virtual lanes over which the subnet manager distributes routes; None if unknown.

    Returns:
        `FREE`, `BY_LANES` or `CYCLE`.
    """
    # Dumps may lack speeds, which `index_network` needs. Any speed is valid, since speeds have no effect on deadlocks.
    networks = (index_network(subnet, Hardware(gbps=1.0)) for subnet in subnets)
    if not any(find_cycle(network) for network in networks):
        return FREE
    return BY_LANES if lanes and lanes > 1 else CYCLE


def refuse_adaptive_deadlock(network: SimulatedNetwork) -> None:
    """Refuse adaptive routing if packets could block each other in a cycle.

    Raises:
        InconsistentError: packets could deadlock; the message names the cycle. `assign_lanes` is no remedy: its lanes
            separate only the routes of forwarding tables.
    """
    if cycle := find_cycle(network, adaptive=True):
        raise InconsistentError(
            f"adaptive routes can deadlock: {describe_cycle(network, cycle)}; simulate static routes"
        )


def describe_deadlock(network: SimulatedNetwork, waits: npt.NDArray[np.uint32]) -> str:
    """Return a description of the cycle of waiting packets.

    Args:
        waits: result of `Simulation.find_waits`.
    """
    ends = len(network.end_to)
    pairs: Ints = np.unique(waits[:, 0].astype(np.int64) * ends + waits[:, 1])
    return describe_cycle(network, _find_cycle(network, pairs))


def _find_cycle(network: SimulatedNetwork, dependencies: Ints) -> list[int]:
    here, there = np.divmod(dependencies, len(network.end_to))
    while len(here):
        # Remove link directions that wait for no remaining link direction. All cycles remain.
        waits = np.zeros(len(network.end_to), np.bool_)
        waits[here] = True
        if waits[there].all():
            break
        here, there = here[waits[there]], there[waits[there]]
    if not len(here):
        return []
    awaited = dict(zip(here.tolist(), there.tolist(), strict=True))
    place: dict[int, int] = {}
    end = int(here[0])
    while end not in place:
        place[end] = len(place)
        end = awaited[end]
    return list(place)[place[end] :]


def assign_lanes(network: SimulatedNetwork, most: int = LANES) -> npt.NDArray[np.uint8] | None:
    """Assign a virtual lane to each pair of leaf switches, so that the waits on each lane form no cycle.

    Returns:
        uint8 [switch, switch], virtual lane of packets from the first leaf to the second; None if one lane is enough.

    Raises:
        InconsistentError: `most` lanes are not enough, or forwarding tables lead packets in a cycle.
    """
    cycle = find_cycle(network)
    if not cycle:
        return None
    _refuse_loops(network)
    lanes = np.zeros((network.switches, network.switches), np.uint8)
    layers: list[dict[int, set[int]]] = []  # [lane], link direction -> awaited link directions
    for (source, destination), steps in sorted(_leaf_paths(network).items(), key=lambda each: (-len(each[1]), each[0])):
        for lane in range(most):
            if lane == len(layers):
                layers.append({})
            if _add_without_cycle(layers[lane], steps):
                lanes[source, destination] = lane
                break
        else:
            raise InconsistentError(
                f"routes can deadlock: {describe_cycle(network, cycle)}; {most} virtual lanes do not prevent it"
            )
    return lanes


def _refuse_loops(network: SimulatedNetwork) -> None:
    for host, name in enumerate(network.host_names):
        for hops, (_, end) in enumerate(follow_routes(network, host)):
            if hops < network.switches:
                continue
            # After this many hops, the packets are in a cycle of link directions. List the cycle's link directions.
            cycle = [int(end[0])]
            while True:
                at = int(network.end_to[cycle[-1]]) - network.hosts
                following = int(network.port_end[at, network.egress[at, host]])
                if following == cycle[0]:
                    break
                cycle.append(following)
            told = f"the tables lead packets for {name!r} in a cycle: {describe_cycle(network, cycle)}"
            raise InconsistentError(told)


def describe_cycle(network: SimulatedNetwork, cycle: list[int]) -> str:
    """Return a text that names the sending node and port of each link direction of a cycle."""
    fabric = network.subnet.fabric
    names = [fabric.node_name[int(fabric.link_node[end // 2, end % 2])] for end in cycle]
    ports = [int(fabric.link_port[end // 2, end % 2]) for end in cycle]
    return " -> ".join(f"{name!r} port {port}" for name, port in zip(names, ports, strict=True)) + " -> the first"


def follow_routes(network: SimulatedNetwork, host: int) -> Iterator[tuple[Ints, Ints]]:
    """Follow a packet from each leaf switch to a host, one hop per iteration.

    Yields:
        First leaf switch, and link direction, of each packet that crosses a link between switches in this hop: two
        arrays. If packets run in a cycle, the iteration ends after S + 1 hops, where S is the number of switches.
    """
    leaf = np.unique(network.host_leaf).astype(np.int64)
    at = leaf
    for _ in range(network.switches + 1):
        port = network.egress[at, host].astype(np.int64)
        width = network.port_end.shape[1]
        end = np.where(port < width, network.port_end[at, np.minimum(port, width - 1)], NONE)
        between = (end != NONE) & (network.end_to[end] >= network.hosts)
        leaf, end = leaf[between], end[between].astype(np.int64)
        if not len(leaf):
            return
        yield leaf, end
        at = network.end_to[end].astype(np.int64) - network.hosts


def _find_dependencies(network: SimulatedNetwork) -> Ints:
    """Return pairs of consecutive link directions on routes by forwarding tables, int64 [pair]. A pair is encoded as
    first * (number of link directions) + second.
    """
    ends = len(network.end_to)
    switch, port = np.nonzero(network.port_end != NONE)
    port_of = np.zeros(ends, np.int64)  # [link direction], sending port
    port_of[network.port_end[switch, port]] = port
    follows = np.zeros((ends, network.port_end.shape[1]), bool)  # [link direction, next link direction's port]
    for host in range(network.hosts):
        before = np.full(network.switches, NONE, np.int64)  # [leaf], link direction of the packet's last hop
        for leaf, end in follow_routes(network, host):
            came = before[leaf]
            follows[came[came != NONE], port_of[end[came != NONE]]] = True
            before[leaf] = end
    first, port = np.nonzero(follows)
    second = network.port_end[network.end_to[first].astype(np.int64) - network.hosts, port]
    return first * ends + second


def _find_adaptive_dependencies(network: SimulatedNetwork) -> Ints:
    """Return the pairs of `_find_dependencies` for all shortest routes; no pair if all routes go up, then down."""
    minimal, level = find_minimal_ports(network), _find_levels(network)

    def moves() -> Iterator[tuple[Ints, Ints, Ints]]:
        return (_move_to(network, minimal[:, leaf]) for leaf in np.unique(network.host_leaf))

    if all(_goes_up_and_down(level[at], level[to], at, to) for at, _, to in moves()):
        return np.zeros(0, np.int64)
    found: Ints = np.zeros(0, np.int64)
    for at, end, to in moves():
        found = np.union1d(found, _join(at, end, to, len(network.end_to)))
    return found


def _move_to(network: SimulatedNetwork, ports: npt.NDArray[np.uint64]) -> tuple[Ints, Ints, Ints]:
    """Return all hops over `ports` that packets from leaf switches can take: switch, link direction, next switch."""
    number = np.arange(network.port_end.shape[1], dtype=np.uint64)
    at, port = np.nonzero((ports[:, number // np.uint64(64)] >> number % np.uint64(64)) & np.uint64(1))
    end = network.port_end[at, port].astype(np.int64)
    to = network.end_to[end].astype(np.int64) - network.hosts
    reached = np.zeros(network.switches, np.bool_)
    reached[network.host_leaf] = True
    before = 0
    while before != (before := int(reached.sum())):
        reached[to[reached[at]]] = True
    taken = reached[at]
    return at[taken], end[taken], to[taken]


def _goes_up_and_down(here: Ints, there: Ints, at: Ints, to: Ints) -> bool:
    """Return True if all routes go up levels, then down: no hop stays on a level, and none goes up after a hop down."""
    came_down = np.zeros(int(max(at.max(initial=0), to.max(initial=0))) + 1, np.bool_)
    came_down[to[there < here]] = True
    return not ((here == there) | (came_down[at] & (there > here))).any()


def _join(at: Ints, end: Ints, to: Ints, ends: int) -> Ints:
    """Return pairs of consecutive link directions, as first * `ends` + second. Link direction end[k] leads from at[k]
    to to[k]."""
    order = np.argsort(at, kind="stable")
    begin, stop = np.searchsorted(at[order], to), np.searchsorted(at[order], to, side="right")
    first = np.repeat(end, stop - begin)
    nth = np.arange(len(first)) - np.repeat(np.cumsum(stop - begin) - (stop - begin), stop - begin)
    pairs: Ints = first * ends + end[order][np.repeat(begin, stop - begin) + nth]
    return pairs


def _find_levels(network: SimulatedNetwork) -> Ints:
    """Return the level of each switch, int64 [switch]: the number of links to the nearest switch with hosts."""
    far = network.switches
    level = np.full(network.switches, far)
    level[network.host_leaf] = 0
    at, port = np.nonzero(network.port_end != NONE)
    to = network.end_to[network.port_end[at, port]].astype(np.int64) - network.hosts
    at, to = at[to >= 0], to[to >= 0]
    for distance in range(1, far):
        near = at[(level[to] == distance - 1) & (level[at] == far)]
        if not len(near):
            break
        level[near] = distance
    return level


def _leaf_paths(network: SimulatedNetwork) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """Return (leaf, other leaf) -> pairs of consecutive link directions on routes to the other leaf's hosts."""
    steps: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for host in range(network.hosts):
        destination = int(network.host_leaf[host])
        before: dict[int, int] = {}
        for leaves, ends in follow_routes(network, host):
            for leaf, end in zip(leaves.tolist(), ends.tolist(), strict=True):
                of_pair = steps.setdefault((leaf, destination), set())
                if leaf in before:
                    of_pair.add((before[leaf], end))
                before[leaf] = end
    return steps


def _add_without_cycle(layer: dict[int, set[int]], steps: set[tuple[int, int]]) -> bool:
    added = [(here, there) for here, there in sorted(steps) if there not in layer.get(here, ())]
    for here, there in added:
        layer.setdefault(here, set()).add(there)
    if not any(_leads_to(layer, there, here) for here, there in added):
        return True
    for here, there in added:
        layer[here].remove(there)
    return False


def _leads_to(layer: dict[int, set[int]], start: int, end: int) -> bool:
    seen, left = {start}, [start]
    while left:
        here = left.pop()
        if here == end:
            return True
        new = layer.get(here, set()) - seen
        seen |= new
        left.extend(new)
    return False
