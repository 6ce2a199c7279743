# SPDX-License-Identifier: Apache-2.0
"""Fabrics and traffic with one planted cause, or none, on several shapes. The cases use no code of the diagnosis."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.hotspots.causes.situation import PairBytes, Situation
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.tables import ForwardingTables
from ibprof_converter.traffic.hosts import find_hosts

Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
Generator = np.random.Generator

NOTHING = "nothing"

FULL = ("xgft:2:8,8:1,8", "tree:4,3", "xgft:2:6,9:1,3:1,2", "xgft:2:12,6:1,12")
"""Shapes without oversubscription: a leaf switch's uplinks are together as fast as its links to hosts."""

TAPERED = ("xgft:2:16,8:1,8", "xgft:3:8,4,4:1,4,4", "xgft:2:12,6:1,2:1,2")
"""Shapes with oversubscription: a leaf switch has two or three hosts for each uplink."""


@dataclass(frozen=True)
class Planted:
    """A case: name, planted cause, network and traffic."""

    name: str
    cause: str
    situation: Situation


def make_rails(shape: str, rails: int = 1) -> list[Subnet]:
    made = [generate(shape, rail) for rail in range(rails)]
    return [Subnet(each.fabric, each.tables, ()) for each in made]


def situation(subnets: Sequence[Subnet], pairs: Pairs, size: int = 1_000_000, rails: Sequence[int] = (0,)) -> Situation:
    """Return a `Situation`: each pair of hosts sends `size` bytes, divided equally among `rails`."""
    hosts = find_hosts([subnet.fabric for subnet in subnets])
    source, destination = pairs
    parts = [(np.full(len(source), rail), hosts.lid[source, rail], hosts.lid[destination, rail]) for rail in rails]
    rail, source_lid, destination_lid = (np.concatenate(column) for column in zip(*parts, strict=True))
    each = np.full(len(rail), size // len(rails), np.uint64)
    return Situation(subnets, hosts, PairBytes.add_up(rail, source_lid, destination_lid, each))


def count_hosts(subnets: Sequence[Subnet]) -> int:
    return len(find_hosts([subnets[0].fabric]).name)


def all_to_all(members: npt.NDArray[np.integer]) -> Pairs:
    source, destination = (each.ravel() for each in np.meshgrid(members, members, indexing="ij"))
    return source[source != destination], destination[source != destination]


def halo(sides: Sequence[int], members: npt.NDArray[np.integer]) -> Pairs:
    grid = np.arange(int(np.prod(sides))).reshape(sides)
    steps = [(axis, step) for axis in range(len(sides)) for step in (-1, 1)]
    source = np.concatenate([grid.ravel()] * len(steps))
    destination = np.concatenate([np.roll(grid, step, axis).ravel() for axis, step in steps])
    return members[source], members[destination]


def modulo_tables(fabric: Fabric, tables: ForwardingTables) -> ForwardingTables:
    """Route each CA by shortest paths. At each level, another digit of the CA's LID selects among equal ports."""
    switches = [node for node in range(fabric.nodes) if fabric.node_kind[node] == NodeKind.SWITCH]
    cables: dict[int, list[tuple[int, int]]] = {node: [] for node in range(fabric.nodes)}
    for (a, b), (p, q) in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True):
        cables[a].append((p, b))
        cables[b].append((q, a))
    row = {int(guid): number for number, guid in enumerate(tables.switch_guid)}
    table = tables.port.copy()
    for node, lid in zip(fabric.port_node.tolist(), fabric.port_lid.tolist(), strict=True):
        if fabric.node_kind[node] == NodeKind.SWITCH:
            continue
        distance = {node: 0}
        queue = deque([node])
        while queue:
            here = queue.popleft()
            for _, other in cables[here]:
                if other not in distance and fabric.node_kind[other] == NodeKind.SWITCH:
                    distance[other] = distance[here] + 1
                    queue.append(other)
        for switch in switches:
            ports = sorted(p for p, other in cables[switch] if distance.get(other, 99) == distance.get(switch, 99) - 1)
            if ports:
                has_hosts = any(fabric.node_kind[other] == NodeKind.CA for _, other in cables[switch])
                digit = lid - 1 if has_hosts else (lid - 1) // len(ports)
                table[row[int(fabric.node_guid[switch])], lid] = ports[digit % len(ports)]
    return ForwardingTables("modulo", tables.switch_guid, table)


def uplinks_of(subnet: Subnet, leaf: int) -> list[int]:
    fabric = subnet.fabric
    return [
        link
        for link, pair in enumerate(fabric.link_node.tolist())
        if leaf in pair and all(fabric.node_kind[node] == NodeKind.SWITCH for node in pair)
    ]


def leaves_of(subnet: Subnet) -> list[int]:
    fabric = subnet.fabric
    is_host = fabric.node_kind[fabric.link_node] == NodeKind.CA
    return sorted({int(node) for node in fabric.link_node[is_host[:, ::-1] & ~is_host]})


def without_links(subnet: Subnet, gone: Sequence[int]) -> Subnet:
    fabric = subnet.fabric
    kept = np.setdiff1d(np.arange(fabric.links), gone)
    names = ("link_node", "link_port", "link_gbps", "link_lanes", "link_half")
    cut = {name: getattr(fabric, name)[kept] for name in names if len(getattr(fabric, name)) == fabric.links}
    fabric = replace(fabric, **cut)
    return Subnet(fabric, modulo_tables(fabric, subnet.tables), ())


def plant_slow_link(shape: str, generator: Generator) -> Situation:
    (subnet,) = make_rails(shape)
    pairs = all_to_all(np.arange(count_hosts([subnet])))
    leaf = int(generator.choice(leaves_of(subnet)))
    gbps = subnet.fabric.link_gbps.copy()
    gbps[generator.choice(uplinks_of(subnet, leaf))] /= float(generator.choice([2.0, 4.0, 10.0]))
    return situation([Subnet(replace(subnet.fabric, link_gbps=gbps), subnet.tables, ())], pairs)


def plant_slow_host_link(shape: str, generator: Generator) -> Situation:
    (subnet,) = make_rails(shape)
    is_host = (subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.CA).any(axis=1)
    gbps = subnet.fabric.link_gbps.copy()
    gbps[generator.choice(np.flatnonzero(is_host))] /= 4.0
    pairs = all_to_all(np.arange(count_hosts([subnet])))
    return situation([Subnet(replace(subnet.fabric, link_gbps=gbps), subnet.tables, ())], pairs)


def plant_one_rail(shape: str, generator: Generator) -> Situation:
    subnets = make_rails(shape, 2)
    return situation(subnets, all_to_all(np.arange(count_hosts(subnets))), rails=(int(generator.integers(2)),))


def plant_many_to_few(shape: str, generator: Generator) -> Situation:
    subnets = make_rails(shape)
    hosts = count_hosts(subnets)
    few = generator.choice(hosts, int(generator.integers(1, 4)), replace=False)
    source = np.setdiff1d(np.arange(hosts), few)
    return situation(subnets, (source, few[np.arange(len(source)) % len(few)]))


def plant_missing_uplink(shape: str, generator: Generator) -> Situation:
    (subnet,) = make_rails(shape)
    leaf = int(generator.choice(leaves_of(subnet)))
    broken = without_links(subnet, [int(generator.choice(uplinks_of(subnet, leaf)))])
    return situation([broken], all_to_all(np.arange(count_hosts([subnet]))))


def plant_oversubscribed_leaf(shape: str, generator: Generator) -> Situation:
    (subnet,) = make_rails(shape)
    leaf = int(generator.choice(leaves_of(subnet)))
    links = uplinks_of(subnet, leaf)
    gone = generator.choice(links, max(2, len(links) * 5 // 8), replace=False).tolist()
    return situation([without_links(subnet, gone)], all_to_all(np.arange(count_hosts([subnet]))))


def plant_tapered_design(shape: str, generator: Generator) -> Situation:
    subnets = make_rails(shape)
    return situation(subnets, all_to_all(np.arange(count_hosts(subnets))))


def plant_bad_tables(shape: str, generator: Generator) -> Situation:
    """Plant bad tables: one leaf switch, or each leaf switch, sends all upward traffic through a single port."""
    (subnet,) = make_rails(shape)
    table = subnet.tables.port.copy()
    leaves = leaves_of(subnet)
    chosen = leaves if generator.integers(2) else [int(generator.choice(leaves))]
    guid = subnet.tables.switch_guid
    for leaf in chosen:
        links = uplinks_of(subnet, leaf)
        ends = [subnet.fabric.link_node[link].tolist().index(leaf) for link in links]
        ports = sorted(int(subnet.fabric.link_port[link, end]) for link, end in zip(links, ends, strict=True))
        row = table[np.searchsorted(guid, subnet.fabric.node_guid[leaf])]
        row[np.isin(row, ports)] = ports[int(generator.integers(len(ports)))] if len(chosen) == 1 else ports[0]
    tables = replace(subnet.tables, port=table)
    return situation([Subnet(subnet.fabric, tables, ())], all_to_all(np.arange(count_hosts([subnet]))))


def plant_shuffled_halo(shape: str, generator: Generator) -> Situation:
    subnets = make_rails(shape)
    hosts = count_hosts(subnets)
    sides = (hosts // 16, 4, 4) if hosts % 16 == 0 else (hosts // 6, 6)
    return situation(subnets, halo(sides, generator.permutation(int(np.prod(sides)))))


def plant_scattered_groups(shape: str, generator: Generator) -> Situation:
    """Plant sub-communicators. Each is scattered over all leaf switches, but would fit on one leaf switch."""
    subnets = make_rails(shape)
    hosts = count_hosts(subnets)
    leaves = len(leaves_of(subnets[0]))
    members = np.arange(hosts).reshape(leaves, -1)
    groups = [all_to_all(each) for each in members.T]
    source, destination = (np.concatenate(column) for column in zip(*groups, strict=True))
    return situation(subnets, (source, destination))


def plain_all_to_all(shape: str, generator: Generator) -> Situation:
    subnets = make_rails(shape)
    return situation(subnets, all_to_all(np.arange(count_hosts(subnets))))


def plain_shift(shape: str, generator: Generator) -> Situation:
    subnets = make_rails(shape)
    source = np.arange(count_hosts(subnets))
    return situation(subnets, (source, (source + 1) % len(source)))


def plain_leaf(shape: str, generator: Generator) -> Situation:
    """Plant no cause: the whole job is on one leaf switch."""
    subnets = make_rails(shape)
    hosts = find_hosts([subnets[0].fabric])
    return situation(subnets, all_to_all(np.flatnonzero(hosts.leaf == generator.integers(hosts.leaf.max() + 1))))


def plain_rails(shape: str, generator: Generator) -> Situation:
    subnets = make_rails(shape, 2)
    return situation(subnets, all_to_all(np.arange(count_hosts(subnets))), rails=(0, 1))


def plant_slow_switch(shape: str, generator: Generator) -> Situation:
    """Plant a slow spine: all links of a spine have half the speed."""
    subnets = make_rails(shape)
    fabric = subnets[0].fabric
    leaves = set(leaves_of(subnets[0]))
    spines = [node for node in np.flatnonzero(fabric.node_kind == NodeKind.SWITCH).tolist() if node not in leaves]
    gbps = fabric.link_gbps.copy()
    gbps[(fabric.link_node == generator.choice(spines)).any(axis=1)] /= 2
    subnets = [Subnet(replace(fabric, link_gbps=gbps), subnets[0].tables, ())]
    return situation(subnets, all_to_all(np.arange(count_hosts(subnets))))


PLANTS: tuple[tuple[str, Callable[[str, Generator], Situation], tuple[str, ...]], ...] = (
    ("slow-link", plant_slow_link, (*FULL[:3], TAPERED[1])),
    ("slow-link", plant_slow_host_link, (FULL[0], TAPERED[0])),
    ("slow-link", plant_slow_switch, (FULL[0], FULL[3])),
    ("one-rail", plant_one_rail, (FULL[0], FULL[1], TAPERED[1])),
    ("many-to-few", plant_many_to_few, (*FULL[:3], TAPERED[0])),
    ("missing-uplink", plant_missing_uplink, (FULL[0], FULL[1], FULL[3])),
    ("oversubscription", plant_oversubscribed_leaf, (FULL[0], FULL[1], FULL[3])),
    ("oversubscription", plant_tapered_design, TAPERED),
    ("routing", plant_bad_tables, (*FULL, TAPERED[0])),
    ("placement", plant_shuffled_halo, TAPERED),
    ("placement", plant_scattered_groups, TAPERED),
    (NOTHING, plain_all_to_all, FULL),
    (NOTHING, plain_shift, (*FULL, *TAPERED)),
    (NOTHING, plain_leaf, (FULL[0], TAPERED[0])),
    (NOTHING, plain_rails, (FULL[0],)),
)


def plant_all(seed: int) -> list[Planted]:
    """Return a case for each kind of cause, on each fabric shape that can have this cause."""
    return [
        Planted(
            f"{plant.__name__.removeprefix('plant_')} {shape} {seed}", cause, plant(shape, np.random.default_rng(seed))
        )
        for cause, plant, shapes in PLANTS
        for shape in shapes
    ]
