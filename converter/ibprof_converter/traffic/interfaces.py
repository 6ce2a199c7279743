# SPDX-License-Identifier: Apache-2.0
"""Adapters of hosts with several networks: which of them are for computing, and which for storage.

DGX and HGX machines have, for example, eight adapters for GPUs and two for storage. A slot is one adapter of a kind of
machine: a network and the adapter's name, such as `mlx5_4`. Slots are compared over all machines of one kind, so a
single slow link does not make its adapter a storage adapter.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ibprof.errors import UsageError, quote_found
from ibprof.text.quantities import count_of
from ibprof_converter.choices import ALL_INTERFACES, COMPUTE, STORAGE
from ibprof_converter.fabric.fabric_graph import Fabric, InterfaceChoice, NodeKind
from ibprof_converter.fabric.node_names import adapter_name, is_adapter_named, natural_key, show_some
from ibprof_converter.traffic.hosts import NO_HOST, Hosts, find_hosts

_FEWEST_SLOTS = 3
"""Fewest adapters of a host whose adapters are divided into compute and storage."""

_FEWEST_SERVERS = 2
"""Fewest storage servers that show where storage is: a single one may be at a leaf switch for computing."""

_MANY_TIMES = 3
"""Slow adapters are for computing if they are this many times as many as the fast ones."""

_STORAGE_WORD = re.compile(r"(?<![a-z])(?:storage|stor|stg|lustre|gpfs|nfs|weka|vast)(?![a-z])", re.IGNORECASE)
_COMPUTE_WORD = re.compile(r"(?<![a-z])(?:compute|gpu|nccl)(?![a-z])", re.IGNORECASE)

_SERVER_NAME = re.compile(
    r"(?<![a-z])(?:storage|stor|stg|nas|nfs|oss|ost|mds|mdt|nsd|lustre|gpfs|weka|vast|ceph|beegfs|ddn)(?![a-z])",
    re.IGNORECASE,
)

_PORT = re.compile(r":[0-9]{1,3}$")
_EXPANDED = re.compile(r"([^\[\]]*)\[([0-9]{1,4})-([0-9]{1,4})\]([^\[\]]*)")

Slot = tuple[int, str]
"""The first rail of a network, and an adapter's name."""


@dataclass(frozen=True, slots=True)
class _Adapter:
    """An adapter of a host.

    Attributes:
        rail, node: its place in the fabrics.
        host: number of its host.
        slot: its network, and its name without the host's name.
        gbps: data rate of its fastest link, nan if unknown.
        leaves: switches that it is cabled to, as (rail, node).
    """

    rail: int
    node: int
    host: int
    slot: Slot
    gbps: float
    leaves: frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Machines:
    """Machines of one kind.

    Attributes:
        slots: adapters by slot, in natural order.
        servers: switches with adapters of storage servers, as (rail, node).
        networks_of_servers: first rails of networks with storage servers.
        switch_name: returns the description of a switch.
    """

    slots: Mapping[Slot, list[_Adapter]]
    servers: frozenset[tuple[int, int]]
    networks_of_servers: frozenset[int]
    switch_name: Callable[[tuple[int, int]], str]


def choose_interfaces(
    fabrics: Sequence[Fabric], choice: str | None = None, rule: re.Pattern[str] | None = None
) -> tuple[Fabric, ...]:
    """Mark the adapters that jobs do not use, so that `find_hosts` leaves their ports out.

    Args:
        fabrics: the rails.
        choice: `COMPUTE`, `STORAGE`, `ALL_INTERFACES`, or names of adapters separated by commas, also as in
            NCCL_IB_HCA; None: `COMPUTE` where adapters differ, else all.
        rule: pattern for hosts' names, as in `find_hosts`.

    Returns:
        The same fabrics if no adapter is left out.

    Raises:
        UsageError: no adapter is chosen.
    """
    if choice == ALL_INTERFACES or not fabrics:
        return tuple(fabrics)
    hosts = find_hosts(fabrics, rule)
    if choice in (None, COMPUTE) and not _has_machines(hosts):
        return tuple(fabrics)
    adapters = list(_list_adapters(fabrics, hosts))
    if choice in (None, COMPUTE, STORAGE):
        role, by = _find_roles(fabrics, adapters, hosts.name)
        if not role:
            if choice == STORAGE:
                raise UsageError(
                    f"--interfaces {STORAGE}: adapters of this fabric differ neither by name nor by speed or wiring; "
                    f"name the adapters: {_name_slots(adapters)}"
                )
            return tuple(fabrics)
        unwanted = COMPUTE if choice == STORAGE else STORAGE
        left_out = [each for each in adapters if role.get((each.rail, each.node)) == unwanted]
    else:
        # As in NCCL_IB_HCA, ^ leaves the named adapters out, and = asks for whole names.
        is_left_out, by = choice.startswith("^"), "name"
        given = choice.removeprefix("^")
        names = _expand_names(given.removeprefix("="))
        named = {each for each in adapters if is_adapter_named(each.slot[1], names)}
        if not named and not given.startswith("="):
            named = {each for each in adapters if each.slot[1].casefold().startswith(tuple(names))}
        else:
            slots = {each.slot[1] for each in adapters}
            absent = sorted(names - {name for name in names for slot in slots if is_adapter_named(slot, {name})})
            by += f" (no adapter is named {show_some(absent)})" if absent else ""
        left_out = [each for each in adapters if (each in named) == is_left_out]
        if not named or len(left_out) == len(adapters):
            why = "no adapter remains" if named else "no adapter has such a name"
            raise UsageError(
                f"--interfaces {choice}: {why}; expected {COMPUTE}, {STORAGE}, "
                f"{ALL_INTERFACES} or names of adapters: {_name_slots(adapters)}"
            )
    if not left_out:
        return tuple(fabrics)
    unused = set(left_out)
    kept_hosts = {each.host for each in adapters if each not in unused}
    whole = {each.host for each in left_out} - kept_hosts
    parts = [_name_slots(some)] if (some := [each for each in left_out if each.host in kept_hosts]) else []
    parts += [f"all of {count_of(len(whole), 'host')}"] if whole else []
    made = InterfaceChoice(
        choice or COMPUTE, choice is None, by, len(adapters) - len(left_out), len(left_out), " and ".join(parts)
    )
    marks = [np.zeros(fabric.nodes, np.bool_) for fabric in fabrics]
    for each in left_out:
        marks[each.rail][each.node] = True
    return tuple(
        replace(fabric, is_left_out=mark, interfaces=made) for fabric, mark in zip(fabrics, marks, strict=True)
    )


def describe_interfaces(fabrics: Sequence[Fabric]) -> Iterator[str]:
    """Yield a sentence on adapters that are left out, if any."""
    made = next((fabric.interfaces for fabric in fabrics), None)
    if made is not None:
        yield f"interfaces: {made.text} (--interfaces {ALL_INTERFACES} uses all)"


def _has_machines(hosts: Hosts) -> bool:
    """Return true if two hosts have enough adapters."""
    host_of = np.concatenate(hosts.of_node)
    return int((np.bincount(host_of[host_of != NO_HOST]) >= _FEWEST_SLOTS).sum()) > 1


def _list_adapters(fabrics: Sequence[Fabric], hosts: Hosts) -> Iterator[_Adapter]:
    network_of: dict[str, int] = {}
    for rail, fabric in enumerate(fabrics):
        network = network_of.setdefault(fabric.plane_of, rail) if fabric.plane_of else rail
        gbps = np.full(fabric.nodes, np.nan)
        leaves: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for end in (0, 1):
            one, peer = fabric.link_node[:, end], fabric.link_node[:, 1 - end]
            np.fmax.at(gbps, one, fabric.link_gbps)
            near = np.flatnonzero((fabric.node_kind[one] == NodeKind.CA) & (fabric.node_kind[peer] == NodeKind.SWITCH))
            for own, switch in zip(one[near].tolist(), peer[near].tolist(), strict=True):
                leaves[own].add((rail, switch))
        for node, host in enumerate(hosts.of_node[rail].tolist()):
            if host != NO_HOST:
                name = adapter_name(fabric.node_name[node], hosts.name[host])
                slot = (network, name or f"{fabric.node_guid[node]:#018x}")
                yield _Adapter(rail, node, host, slot, float(gbps[node]), frozenset(leaves[node]))


def _name_slots(adapters: Sequence[_Adapter]) -> str:
    return show_some(sorted({each.slot[1] for each in adapters}, key=natural_key), 12)


def _expand_names(text: str) -> frozenset[str]:
    """Return the names of a list such as `mlx5_[0-3],HCA-9,mlx5_7:1`, in lower case, without ports."""
    names = set()
    for name in filter(None, (_PORT.sub("", each.strip().casefold()) for each in text.split(","))):
        if match := _EXPANDED.fullmatch(name):
            before, first, last, after = match.groups()
            names |= {f"{before}{number}{after}" for number in range(int(first), int(last) + 1)}
        else:
            names.add(name)
    if not names:
        raise UsageError(f"--interfaces {quote_found(text)}: expected names of adapters, separated by commas")
    return frozenset(names)


def _find_roles(
    fabrics: Sequence[Fabric], adapters: Sequence[_Adapter], names: Sequence[str]
) -> tuple[dict[tuple[int, int], str], str]:
    """Return `COMPUTE` or `STORAGE` by (rail, node), and the evidence; empty if the adapters do not differ.

    Args:
        fabrics: the rails.
        adapters: the adapters of all hosts.
        names: name of each host.
    """
    of_host: dict[int, list[_Adapter]] = defaultdict(list)
    for each in adapters:
        of_host[each.host].append(each)
    kinds = _group_machines(of_host)
    role: dict[tuple[int, int], str] = {}
    evidence: dict[str, None] = {}
    grouped = {host for hosts in kinds.values() for host in hosts}
    others = [each for each in adapters if each.host not in grouped]
    named = [each for each in others if _SERVER_NAME.search(names[each.host])]
    servers = named if len({each.host for each in named}) >= _FEWEST_SERVERS else []
    for slots, hosts in kinds.items():
        by_slot: dict[Slot, list[_Adapter]] = {
            slot: [] for slot in sorted(slots, key=lambda s: (s[0], natural_key(s[1])))
        }
        for each in (each for host in hosts for each in of_host[host] if each.slot in slots):
            by_slot[each.slot].append(each)
        machines = _Machines(
            by_slot,
            frozenset(leaf for each in servers for leaf in each.leaves),
            frozenset(each.slot[0] for each in servers),
            lambda place: fabrics[place[0]].node_name[place[1]],
        )
        for by, divide in (("name", _divide_by_name), ("speed", _divide_by_speed), ("wiring", _divide_by_wiring)):
            storage = divide(machines)
            if 0 < len(storage) < len(by_slot):
                evidence[by] = None
                alike = _hosts_of_one_speed(by_slot, storage) if by == "speed" else frozenset[int]()
                for slot, members in by_slot.items():
                    for each in members:
                        role[each.rail, each.node] = _role(slot in storage and each.host not in alike)
                break
    if role:
        role.update(dict.fromkeys(_find_storage_servers(adapters, named, role), STORAGE))
    return role, " and ".join(evidence)


def _role(is_storage: bool) -> str:
    return STORAGE if is_storage else COMPUTE


def _group_machines(of_host: Mapping[int, Sequence[_Adapter]]) -> dict[frozenset[Slot], list[int]]:
    """Return the hosts of each kind of machine, by its slots; hosts that lack adapters belong to the whole kind."""
    shapes = {host: frozenset(each.slot for each in own) for host, own in of_host.items()}
    count = Counter(shape for shape in shapes.values() if len(shape) >= _FEWEST_SLOTS)
    common = sorted(count, key=lambda shape: (-count[shape], -len(shape), sorted(shape)))
    kinds: dict[frozenset[Slot], list[int]] = {}
    kind_of = {shape: next(whole for whole in common if shape <= whole) for shape in common}
    for host, shape in shapes.items():
        if shape in kind_of:
            kinds.setdefault(kind_of[shape], []).append(host)
    return {slots: hosts for slots, hosts in kinds.items() if len(hosts) > 1}


def _divide_by_name(machines: _Machines) -> set[Slot]:
    """Return the slots whose names, or whose switches' names, contain a word for storage; or lack one for computing."""
    texts = {
        slot: [" ".join((each.slot[1], *map(machines.switch_name, each.leaves))) for each in members]
        for slot, members in machines.slots.items()
    }
    storage, compute = (
        {slot for slot, some in texts.items() if 2 * sum(bool(word.search(text)) for text in some) > len(some)}
        for word in (_STORAGE_WORD, _COMPUTE_WORD)
    )
    return storage - compute if storage else set(machines.slots) - compute if compute else set()


def _divide_by_speed(machines: _Machines) -> set[Slot]:
    """Return the slots with another speed than those for computing, which are the fast ones unless they are few."""
    speed = {slot: float(np.nanmax([0.0, *_usual(members)])) for slot, members in machines.slots.items()}
    fastest = max(speed.values())
    fast = {slot for slot, gbps in speed.items() if gbps == fastest}
    slow = set(speed) - fast
    if not slow or min(speed.values()) <= 0:
        return set()
    if len(fast) >= len(slow):
        return slow
    return fast if len(slow) >= _MANY_TIMES * len(fast) and len({speed[slot] for slot in slow}) == 1 else set()


def _hosts_of_one_speed(by_slot: Mapping[Slot, Sequence[_Adapter]], storage: set[Slot]) -> frozenset[int]:
    """Return the hosts, of other generations, whose slots for storage are as fast as the others, or all they have."""
    speeds: dict[int, tuple[set[float], set[float]]] = defaultdict(lambda: (set(), set()))
    for slot, members in by_slot.items():
        for each in members:
            speeds[each.host][slot in storage].add(each.gbps)
    return frozenset(host for host, (compute, other) in speeds.items() if other and compute in (set(), other))


def _usual(members: Sequence[_Adapter]) -> list[float]:
    """Return the most frequent speed of adapters; the faster one of equally frequent speeds."""
    count = Counter(each.gbps for each in members if each.gbps > 0)
    return [max(count, key=lambda gbps: (count[gbps], gbps))] if count else []


def _divide_by_wiring(machines: _Machines) -> set[Slot]:
    """Return the slots on the networks or leaf switches of storage servers, or those that share a leaf switch.

    Any other machine, such as one of the subnet manager, may be at a leaf switch for computing. So only servers with a
    storage server's name count. Most machines must have the wiring: two cables may be swapped.
    """
    slots = set(machines.slots)
    outside = {slot for slot in slots if slot[0] in machines.networks_of_servers}
    if _is_minority(outside, slots):
        return outside
    near, apart = set[Slot](), set[Slot]()
    for slot, members in machines.slots.items():
        count = sum(not each.leaves.isdisjoint(machines.servers) for each in members)
        (near if 2 * count > len(members) else apart if not count else set[Slot]()).add(slot)
    if near | apart == slots and _is_minority(near, slots):
        return near
    # No two compute slots share a leaf switch in a rail-optimised network.
    leaves = {slot: {each.host: each.leaves for each in members} for slot, members in machines.slots.items()}

    def share(one: Slot, other: Slot) -> bool:
        both = leaves[one].keys() & leaves[other].keys()
        return 2 * sum(leaves[one][host] == leaves[other][host] for host in both) > len(both)

    joined = {slot for slot in slots if any(share(slot, other) for other in slots - {slot})}
    first = min(joined, default=None)
    is_one_group = first is not None and all(share(first, slot) for slot in joined)
    return joined if is_one_group and _is_minority(joined, slots) else set()


def _is_minority(some: set[Slot], slots: set[Slot]) -> bool:
    return 0 < 2 * len(some) < len(slots)


def _find_storage_servers(
    adapters: Sequence[_Adapter], named: Sequence[_Adapter], role: Mapping[tuple[int, int], str]
) -> Iterator[tuple[int, int]]:
    """Yield the adapters of machines with a storage server's name that are all where only storage adapters are.

    Any other machine there, such as a login or CPU node with one adapter, may run jobs.
    """
    leaves: dict[str, set[tuple[int, int]]] = {COMPUTE: set(), STORAGE: set()}
    networks: dict[str, set[int]] = {COMPUTE: set(), STORAGE: set()}
    for each in adapters:
        if own := role.get((each.rail, each.node)):
            leaves[own] |= each.leaves
            networks[own].add(each.slot[0])
    of_storage = leaves[STORAGE] - leaves[COMPUTE]
    only_storage = networks[STORAGE] - networks[COMPUTE]
    by_host: dict[int, list[_Adapter]] = defaultdict(list)
    for each in named:
        by_host[each.host].append(each)
    for own_adapters in by_host.values():
        if all(each.slot[0] in only_storage or (each.leaves and each.leaves <= of_storage) for each in own_adapters):
            yield from ((each.rail, each.node) for each in own_adapters)
