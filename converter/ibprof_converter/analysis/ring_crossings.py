# SPDX-License-Identifier: Apache-2.0
"""Find hops of NCCL's rings from one leaf switch to another, and an order of hosts with fewer such crossings.

A ring enters a host by one network device, passes the host's GPUs, and leaves the host by another device. Logs name the
devices of each host. A graph names the devices of one host, which are assumed for all hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ibprof.errors import InconsistentError, UsageError, quote_found
from ibprof.text.quantities import count_of
from ibprof_converter.analysis.pipeline_results import RoutedFabric
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.node_names import adapter_name, is_adapter_named, natural_key, show_some
from ibprof_converter.traffic.hosts import HostIndex
from ibprof_converter.traffic.nccl_topology import RingNets

_SHOWN = 4

Leaf = tuple[int, int]
"""Rail and node of a switch."""

Adapter = tuple[Leaf, str]
"""(leaf switch of an adapter, name of the adapter)."""


@dataclass(frozen=True, slots=True)
class RingCrossings:
    """The hops of one channel's ring between hosts.

    Attributes:
        channel: number of the channel.
        adapters: names of the two adapters by which the ring enters and leaves the first host.
        hops: number of hops between hosts.
        crossings: (leaf switch, next leaf switch) -> number of hops between these switches.
        between_rails: number of hops between adapters on different rails.
    """

    channel: int
    adapters: tuple[str, ...]
    hops: int
    crossings: dict[tuple[str, str], int]
    between_rails: int

    def as_json(self) -> dict[str, object]:
        """Return plain values."""
        rows = [{"from": one, "to": other, "hops": count} for (one, other), count in self.crossings.items()]
        return asdict(self) | {"crossings": rows}

    def describe(self) -> str:
        """Return a sentence on the leaf switches that the ring crosses."""
        by = f"ring of channel {self.channel} ({' -> '.join(self.adapters)})"
        if self.between_rails:
            return f"{by} cannot pass {self.between_rails} of {self.hops} hops: the two adapters are on different rails"
        if not self.crossings:
            return f"{by} stays on its leaf switch: {count_of(self.hops, 'hop')}"
        most = sorted(self.crossings.items(), key=lambda item: (-item[1], item[0]))
        shown = [f"{one} -> {other} {count_of(count, 'time')}" for (one, other), count in most]
        return f"{by} crosses {show_some(shown, _SHOWN)}; {sum(self.crossings.values())} of {self.hops} hops"


@dataclass(frozen=True, slots=True)
class RingReport:
    """NCCL's rings over hosts.

    Attributes:
        hosts: hosts in the order of ranks.
        rings: the ring of each channel.
        gpus: GPU -> names of the nearest adapters; empty without a topology.
        better: hosts in an order with fewer crossings; the given order if the search found no better order.
        better_crossings: number of crossings in the order `better`.
        least_crossings: lower bound, for any order, of the number of crossings.
        ranks_per_host: number of GPUs of a host.
        notes: sentences on assumptions.
    """

    hosts: tuple[str, ...]
    rings: tuple[RingCrossings, ...]
    gpus: dict[str, tuple[str, ...]]
    better: tuple[str, ...]
    better_crossings: int
    least_crossings: int
    ranks_per_host: int
    notes: tuple[str, ...]

    @property
    def crossings(self) -> int:
        """Number of hops between different leaf switches or rails, over all rings."""
        return sum(sum(ring.crossings.values()) + ring.between_rails for ring in self.rings)

    def as_json(self) -> dict[str, object]:
        """Return plain values."""
        return asdict(self) | {"rings": [ring.as_json() for ring in self.rings], "crossings": self.crossings}

    def describe(self) -> Iterator[str]:
        """Yield the lines of the report."""
        yield from self.notes
        yield from (f"GPU {name}: nearest adapters {', '.join(nets)}" for name, nets in self.gpus.items())
        yield from (ring.describe() for ring in self.rings)
        crossed = f"{count_of(self.crossings, 'hop')} cross leaf switches"
        if self.better_crossings < self.crossings:
            order = show_some(self.better, 2 * _SHOWN)
            found = f"the rank order {order} lowers this to {self.better_crossings}"
        else:
            found = "no better rank order is known"
        yield f"{crossed}; {found} (lower bound: {self.least_crossings})"


def follow_rings(fabric: RoutedFabric, nets: RingNets, names: Sequence[str]) -> RingReport:
    """Find the hops of rings from one leaf switch to another.

    Args:
        nets: the network devices of each ring. A device without a name is an index into the host's ports by rail and
            name.
        names: hosts in the order of ranks. If empty: the hosts of `nets`, or all hosts if `nets` has no hosts.

    Raises:
        UsageError: a host is unknown, or there are fewer than two hosts.
        InconsistentError: an adapter of a host is not in the fabric, or the logs have no ring on a host.
    """
    order = _find_hosts(fabric, names or nets.hosts, "--hosts" if names else "the log")
    if len(order) < 2:
        raise UsageError(f"rings between hosts need 2 hosts, found {len(order)}")
    index = HostIndex(fabric.hosts.name, fabric.hosts.shared)
    ends_of = {index.find(host): ends for host, ends in nets.of_host.items() if host}
    labels_of = {index.find(host): labels for host, labels in nets.labels.items() if host}
    common, common_labels = nets.of_host.get(""), nets.labels.get("", {})
    leaf_of = [_find_leaves(each) for each in fabric.fabrics]
    passes = []
    for host in order:
        ends = ends_of.get(host, common)
        if ends is None:
            raise InconsistentError(f"the logs have no ring on host {fabric.hosts.name[host]}")
        found = _find_adapters(
            fabric, leaf_of, host, sorted({dev for pair in ends for dev in pair}), labels_of.get(host, common_labels)
        )
        passes.append([(found[enter], found[leave]) for enter, leave in ends])

    def at(place: int, host: int, channel: int) -> tuple[Adapter, Adapter]:
        return passes[host][channel ^ 1 if nets.alternates and place % 2 else channel]

    def count(hosts: Sequence[int]) -> list[Counter[tuple[Leaf, Leaf]]]:
        sums: list[Counter[tuple[Leaf, Leaf]]] = [Counter() for _ in nets.channels]
        for place, host in enumerate(hosts):
            following = (place + 1) % len(hosts)
            for channel, hops in enumerate(sums):
                leaving, entering = at(place, host, channel)[1], at(following, hosts[following], channel)[0]
                hops[leaving[0], entering[0]] += 1
        return sums

    def total(sums: Sequence[Counter[tuple[Leaf, Leaf]]]) -> int:
        return sum(number for each in sums for (one, two), number in each.items() if one != two)

    sums = count(range(len(order)))
    better = _order_by_leaf(fabric, order, passes)
    better_total = total(count(better))
    if better_total >= total(sums):
        better, better_total = list(range(len(order))), total(sums)
    least = 0
    for channel in range(len(nets.channels) if not nets.alternates else 0):
        used = {leaf for ends in passes for leaf, _ in ends[channel]}
        stays = all(enter == leave for enter, leave in (ends[channel] for ends in passes))
        least += len(used) if len(used) > 1 and stays else 0
    rings = [
        RingCrossings(
            number,
            tuple(dict.fromkeys(name for _, name in passes[0][channel])),
            len(order),
            _name_crossings(fabric, sums[channel]),
            sum(hops for (one, two), hops in sums[channel].items() if one[0] != two[0]),
        )
        for channel, number in enumerate(nets.channels)
    ]
    host_names = fabric.hosts.name
    return RingReport(
        tuple(host_names[host] for host in order),
        tuple(rings),
        dict(nets.gpus),
        tuple(host_names[order[place]] for place in better),
        better_total,
        min(least, better_total),
        nets.ranks_per_host,
        nets.notes,
    )


def _find_hosts(fabric: RoutedFabric, names: Sequence[str], source: str) -> list[int]:
    if not names:
        return sorted(range(len(fabric.hosts.name)), key=lambda host: natural_key(fabric.hosts.name[host]))
    index = HostIndex(fabric.hosts.name, fabric.hosts.shared)
    found = [index.find(name) for name in names]
    for name, host in zip(names, found, strict=True):
        if host is None:
            raise UsageError(f"{source}: no host {quote_found(name)} in the fabric{index.describe_unknown(name)}")
    return [host for host in dict.fromkeys(found) if host is not None]


def _find_leaves(fabric: Fabric) -> dict[int, int]:
    """Return the switch to which each node's first link leads."""
    is_switch = fabric.node_kind[fabric.link_node] == NodeKind.SWITCH
    found: dict[int, int] = {}
    for end in (1, 0):
        links = np.flatnonzero(is_switch[:, 1 - end])[::-1]
        found.update(zip(*(fabric.link_node[links, side].tolist() for side in (end, 1 - end)), strict=True))
    return found


def _find_adapters(
    fabric: RoutedFabric,
    leaf_of: Sequence[Mapping[int, int]],
    host: int,
    devices: Sequence[int],
    label: Mapping[int, str],
) -> dict[int, Adapter]:
    """Return leaf switch and name of the adapter of each network device of a host."""
    ports: list[Adapter] = []
    rail_of: dict[tuple[str, str], int] = {}
    for rail, each in enumerate(fabric.fabrics):
        for lid in fabric.hosts.ports[host, rail].tolist():
            if lid:
                node = int(each.lid_node[lid])
                switch = leaf_of[rail].get(node)
                name = adapter_name(each.node_name[node], fabric.hosts.name[host])
                # an adapter with a port on each plane is one network device
                if switch is not None and (
                    not each.plane_of or rail_of.setdefault((each.plane_of, name), rail) == rail
                ):
                    ports.append(((rail, switch), name))
    found = {}
    for dev in devices:
        if dev in label:
            place = next((port for port in ports if is_adapter_named(port[1], {label[dev].casefold()})), None)
        else:
            place = ports[dev] if dev < len(ports) else None
        if place is None:
            wanted = label.get(dev) or f"network device {dev}"
            had = show_some([name for _, name in ports], 10)
            raise InconsistentError(f"host {fabric.hosts.name[host]} has no {wanted}; its adapters are {had}")
        found[dev] = place
    return found


def _order_by_leaf(
    fabric: RoutedFabric, order: Sequence[int], passes: Sequence[Sequence[tuple[Adapter, Adapter]]]
) -> list[int]:
    """Return indices into `order`, sorted so that hosts with equal leaf switches are adjacent.

    The first group contains the first host by name. The next group is always the remaining group that shares the most
    leaf switches with the last group.
    """
    groups: dict[tuple[Leaf, ...], list[int]] = {}
    for place in sorted(range(len(order)), key=lambda place: natural_key(fabric.hosts.name[order[place]])):
        groups.setdefault(tuple(leaf for ends in passes[place] for leaf, _ in ends), []).append(place)
    left = list(groups)
    chain = [left.pop(0)]
    while left:
        shared = [sum(one == two for one, two in zip(chain[-1][1::2], each[::2], strict=True)) for each in left]
        chain.append(left.pop(shared.index(max(shared))))
    return [place for key in chain for place in groups[key]]


def _name_crossings(fabric: RoutedFabric, hops: Counter[tuple[Leaf, Leaf]]) -> dict[tuple[str, str], int]:
    """Return (leaf switch, next leaf switch) -> hops on one rail, with the switches' names. Rails may share names."""
    named: Counter[tuple[str, str]] = Counter()
    for (one, two), count in hops.items():
        if one != two and one[0] == two[0]:
            name = fabric.fabrics[one[0]].node_name
            named[name[one[1]], name[two[1]]] += count
    return dict(named)
