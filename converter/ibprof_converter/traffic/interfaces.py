# SPDX-License-Identifier: Apache-2.0
"""Divide adapters into compute adapters and storage adapters, if hosts are on several networks.

DGX and HGX machines have, for example, eight adapters for GPUs and two for storage. Here, a slot is a pair of a network
and an adapter's name, such as `mlx5_4`. All machines of one model have the same slots. ibprof compares a slot's
adapters over all machines of a model. So a single adapter with a slow link is not classified as a storage adapter.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import eq
from typing import Any

import numpy as np

from ibprof.errors import UsageError, quote_found
from ibprof.text.quantities import count_of
from ibprof_converter.choices import ALL_INTERFACES, COMPUTE, STORAGE
from ibprof_converter.fabric.fabric_graph import Fabric, InterfaceChoice, NodeKind, Partitions
from ibprof_converter.fabric.node_names import adapter_name, is_adapter_named, natural_key, show_some
from ibprof_converter.fabric.partitions import DEFAULT_PKEY, LARGEST_PKEY, PARTITIONS_CONF
from ibprof_converter.traffic.hosts import NO_HOST, Hosts, find_hosts

_FEWEST_SLOTS = 3
"""Hosts with fewer adapters than this are not searched for storage adapters."""

_FEWEST_SERVERS = 2
"""Storage servers are found only if at least this number of machines are named like storage servers.

A single server can be cabled to a leaf switch of compute adapters.
"""

_MANY_TIMES = 3
"""Slow adapters are for computing if there are at least this number of slow adapters per fast adapter."""

_STORAGE_WORD = re.compile(r"(?<![a-z])(?:storage|stor|stg|lustre|gpfs|nfs|weka|vast)(?![a-z])", re.IGNORECASE)
_COMPUTE_WORD = re.compile(r"(?<![a-z])(?:compute|gpu|nccl)(?![a-z])", re.IGNORECASE)

_P_KEY = re.compile(r"0x[0-9a-f]{1,4}|0|[1-9][0-9]{0,4}")

_SERVER_NAME = re.compile(
    r"(?<![a-z])(?:storage|stor|stg|nas|nfs|oss|ost|mds|mdt|nsd|lustre|gpfs|weka|vast|ceph|beegfs|ddn)(?![a-z])",
    re.IGNORECASE,
)

_PARTITION = "pkey:"

_PORT = re.compile(r":[0-9]{1,3}$")
_EXPANDED = re.compile(r"([^\[\]]*)\[([0-9]{1,4})-([0-9]{1,4})\]([^\[\]]*)")

Slot = tuple[int, str]
"""A slot: the index of a network's first rail, and an adapter's name."""


@dataclass(frozen=True, slots=True)
class _Adapter:
    """An adapter of a host.

    Attributes:
        rail, node: index of the rail, and index of the adapter's node in the rail's fabric.
        slot: the network, and the adapter's name without the host's name.
        gbps: data rate of the adapter's fastest link, in Gbit/s; nan if unknown.
        leaves: switches to which the adapter is cabled, as (rail, node).
        pkeys: partitions of the adapter's ports, as (network, P_Key), without the default partition.
        is_limited: true if the adapter's ports are limited members of all their partitions. Two limited members cannot
            send to each other.
        partition_names: names of the adapter's partitions.
    """

    rail: int
    node: int
    host: int
    slot: Slot
    gbps: float
    leaves: frozenset[tuple[int, int]]
    pkeys: frozenset[tuple[int, int]]
    is_limited: bool
    partition_names: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Machines:
    """Machines with the same slots (pairs of a network and an adapter's name).

    Attributes:
        slots: slot -> adapters of all machines; slots are sorted by network, then by the natural order of names.
        servers: switches to which storage servers are cabled, as (rail, node).
        pkeys_of_servers: partitions of storage servers.
        networks_of_servers: networks with storage servers, each by its first rail.
        switch_name: function that returns the description of the switch (rail, node).
    """

    slots: Mapping[Slot, list[_Adapter]]
    servers: frozenset[tuple[int, int]]
    pkeys_of_servers: frozenset[tuple[int, int]]
    networks_of_servers: frozenset[int]
    switch_name: Callable[[tuple[int, int]], str]


def choose_interfaces(
    fabrics: Sequence[Fabric], choice: str | None = None, rule: re.Pattern[str] | None = None
) -> tuple[Fabric, ...]:
    """Mark the adapters that jobs do not use, so that `find_hosts` leaves out the ports of these adapters.

    Args:
        choice: one of `COMPUTE`, `STORAGE` and `ALL_INTERFACES`; or `pkey:` with a P_Key or the name of a partition; or
            names of adapters separated by commas, also with the prefixes of NCCL_IB_HCA. If None: `COMPUTE` if the
            fabrics have storage adapters, else `ALL_INTERFACES`.
        rule: pattern for hosts' names, as in `find_hosts`.

    Returns:
        The fabrics; if any adapter is left out, their `is_left_out` is set.

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
                    f"--interfaces {STORAGE}: names, partitions, speeds and wiring do not show which adapters are for "
                    f"storage; name these adapters: some of {_name_slots(adapters)}"
                )
            return tuple(fabrics)
        unwanted = COMPUTE if choice == STORAGE else STORAGE
        left_out = [each for each in adapters if role.get((each.rail, each.node)) == unwanted]
    elif choice.casefold().startswith(_PARTITION):
        by, left_out = "partition", _leave_out_of_partition(fabrics, adapters, choice)
    else:
        # As in NCCL_IB_HCA, ^ leaves the named adapters out. Without =, names are prefixes if no adapter has one of the
        # names.
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
    """Yield a note with the number of adapters that are left out, if any."""
    made = next((fabric.interfaces for fabric in fabrics), None)
    if made is not None:
        yield f"interfaces: {made.text} (--interfaces {ALL_INTERFACES} uses all)"


def _leave_out_of_partition(fabrics: Sequence[Fabric], adapters: Sequence[_Adapter], choice: str) -> list[_Adapter]:
    """Return the adapters outside the partition whose name or P_Key is `choice`.

    Raises:
        UsageError: no dump states partitions, or no adapter is in the named partition.
    """
    wanted = choice[len(_PARTITION) :].strip().casefold()
    known = [fabric.partitions for fabric in fabrics if fabric.partitions]
    if not known:
        raise UsageError(
            f"--interfaces {choice}: no file of partitions was read; name OpenSM's {PARTITIONS_CONF} or "
            "ibdiagnet's .pkey among the dumps"
        )
    keys = {key for each in known for key, name in each.names.items() if name.casefold() == wanted}
    if _P_KEY.fullmatch(wanted) and (number := int(wanted, 0)) <= LARGEST_PKEY:
        keys.add(number & DEFAULT_PKEY)
    members = {(rail, node) for rail, each in enumerate(fabrics) for node in _list_members(each.partitions, keys)}
    left_out = [each for each in adapters if (each.rail, each.node) not in members]
    if len(left_out) == len(adapters):
        names = {key: name for each in known for key, name in each.names.items()}
        found = sorted({key for each in known for own in each.of_node.values() for key in own})
        texts = [" ".join(filter(None, (names.get(key), f"{key:#06x}" if key > 0 else ""))) for key in found]
        some = show_some(list(filter(None, texts)), 12)
        raise UsageError(f"--interfaces {choice}: no adapter is in this partition; expected one of {some}")
    return left_out


def _list_members(partitions: Partitions | None, keys: set[int]) -> set[int]:
    return {node for node, own in partitions.of_node.items() if keys & own.keys()} if partitions else set()


def _has_machines(hosts: Hosts) -> bool:
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
                keys = made.of_node.get(node, {}) if (made := fabric.partitions) else {}
                yield _Adapter(
                    rail,
                    node,
                    host,
                    slot,
                    float(gbps[node]),
                    frozenset(leaves[node]),
                    frozenset((network, key) for key in keys if key != DEFAULT_PKEY),
                    bool(keys) and not any(keys.values()),
                    frozenset(made.names[key] for key in keys if key in made.names) if made else frozenset(),
                )


def _name_slots(adapters: Sequence[_Adapter]) -> str:
    return show_some(sorted({each.slot[1] for each in adapters}, key=natural_key), 12)


def _expand_names(text: str) -> frozenset[str]:
    """Return the names in a list such as `mlx5_[0-3],HCA-9,mlx5_7:1`, in lower case, without ports."""
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
    """Return (rail, node) -> `COMPUTE` or `STORAGE`, and the evidence in words; {} and an empty text if unknown."""
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
            frozenset(key for each in servers for key in each.pkeys),
            frozenset(each.slot[0] for each in servers),
            lambda place: fabrics[place[0]].node_name[place[1]],
        )
        for by, divide in _EVIDENCE:
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
    """Return each set of adapter slots, and the hosts that have these slots.

    A host with only some slots of a more frequent set belongs to this set. Hosts with fewer than `_FEWEST_SLOTS`
    slots, and sets of a single host, are left out.
    """
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
    """Return the adapter slots with a storage word, such as `lustre`, in the name of an adapter or of its switch.

    A slot with a computing word, such as `gpu`, in a name is never returned. If no slot has a storage word, but some
    slots have a computing word, return all slots without a computing word.
    """
    return _divide_by_words(machines, lambda each: " ".join((each.slot[1], *map(machines.switch_name, each.leaves))))


def _divide_by_words(machines: _Machines, describe: Callable[[_Adapter], str]) -> set[Slot]:
    # Search each distinct description only once: many adapters have equal descriptions.
    texts = {slot: Counter(map(describe, members)) for slot, members in machines.slots.items()}
    storage, compute = (
        {
            slot
            for slot, some in texts.items()
            if 2 * sum(count for text, count in some.items() if word.search(text)) > some.total()
        }
        for word in (_STORAGE_WORD, _COMPUTE_WORD)
    )
    return storage - compute if storage else set(machines.slots) - compute if compute else set()


def _divide_by_partition(machines: _Machines) -> set[Slot]:
    """Return the adapter slots in storage partitions.

    These criteria are tried in order, until a criterion holds for some slots, but not for all slots:

    * The names of the slot's partitions contain a storage word.
    * On most machines, the slot's adapter is a limited member of all its partitions.
    * On most machines, the slot shares a partition with storage servers.
    * If every slot has a partition other than the default: the slot is outside the largest group of slots with common
      partitions, or in the only group of several slots. These slots are fewer than half of all slots.
    """
    slots = set(machines.slots)
    if (named := _divide_by_words(machines, lambda each: " ".join(each.partition_names))) and named < slots:
        return named

    def most(is_so: Callable[[_Adapter], bool]) -> set[Slot]:
        return {slot for slot, some in machines.slots.items() if 2 * sum(map(is_so, some)) > len(some)}

    for found in (most(lambda each: each.is_limited), most(lambda each: bool(each.pkeys & machines.pkeys_of_servers))):
        if found and found < slots:
            return found
    keys = {slot: {each.host: each.pkeys for each in members} for slot, members in machines.slots.items()}
    if most(lambda each: bool(each.pkeys)) != slots:  # undecided: the partitions may be for IPoIB
        return set()
    groups = _group_slots(keys, lambda one, other: not one.isdisjoint(other))
    outside = slots - max(groups, key=len)
    return outside if _is_minority(outside, slots) else _find_sharing(groups, slots)


def _divide_by_speed(machines: _Machines) -> set[Slot]:
    """Return the slots below the highest speed as storage slots, if these are at most half of all slots.

    Otherwise, return the fastest slots, if all slower slots have one speed and slower slots / fastest slots is at least
    `_MANY_TIMES`. Return an empty set in all other cases, and if a speed is unknown.
    """
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
    """Return hosts without compute adapters, and hosts whose storage and compute adapters are equally fast.

    These hosts are of another hardware generation: speeds do not show their storage adapters.
    """
    speeds: dict[int, tuple[set[float], set[float]]] = defaultdict(lambda: (set(), set()))
    for slot, members in by_slot.items():
        for each in members:
            speeds[each.host][slot in storage].add(each.gbps)
    return frozenset(host for host, (compute, other) in speeds.items() if other and compute in (set(), other))


def _usual(members: Sequence[_Adapter]) -> list[float]:
    """Return the most frequent speed in a list; of equally frequent speeds, the highest; empty if no speed is known."""
    count = Counter(each.gbps for each in members if each.gbps > 0)
    return [max(count, key=lambda gbps: (count[gbps], gbps))] if count else []


def _divide_by_wiring(machines: _Machines) -> set[Slot]:
    """Return the adapter slots on the networks or leaf switches of storage servers.

    These slots must be fewer than half of all slots. Leaf switches decide only if each slot is cabled to leaf switches
    of storage servers either on most hosts or on no host. Otherwise, return the slots that share a leaf switch on most
    hosts, if these are fewer than half of all slots. The wiring of most machines decides, because single cables may be
    swapped.
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
    # Slots that share a leaf switch are storage slots: in a rail-optimised network, each compute slot has its own leaf.
    leaves = {slot: {each.host: each.leaves for each in members} for slot, members in machines.slots.items()}
    return _find_sharing(_group_slots(leaves, eq), slots)


def _group_slots(
    values: Mapping[Slot, Mapping[int, frozenset[tuple[int, int]]]], is_shared: Callable[[Any, Any], bool]
) -> list[set[Slot]]:
    """Return groups of adapter slots. On most hosts, the values of a group's slots agree with those of its first slot.

    Args:
        values: slot -> host -> P_Keys or leaf switches.
        is_shared: function that returns true if the values of two slots agree.
    """
    groups: list[tuple[Slot, set[Slot]]] = []
    for slot, own in sorted(values.items()):
        for first, group in groups:
            both = own.keys() & values[first].keys()
            if 2 * sum(is_shared(own[host], values[first][host]) for host in both) > len(both):
                group.add(slot)
                break
        else:
            groups.append((slot, {slot}))
    return [group for _, group in groups]


def _find_sharing(groups: Sequence[set[Slot]], slots: set[Slot]) -> set[Slot]:
    """Return the only group of several slots, if it has fewer than half of all slots; else an empty set."""
    joined = [group for group in groups if len(group) > 1]
    return joined[0] if len(joined) == 1 and _is_minority(joined[0], slots) else set()


def _is_minority(some: set[Slot], slots: set[Slot]) -> bool:
    return 0 < 2 * len(some) < len(slots)


def _find_storage_servers(
    adapters: Sequence[_Adapter], named: Sequence[_Adapter], role: Mapping[tuple[int, int], str]
) -> Iterator[tuple[int, int]]:
    """Yield the adapters, as (rail, node), of storage servers: machines on storage switches or storage networks only.

    A switch or network is for storage if storage adapters, but no compute adapters, are cabled to it. A storage server
    must also be named like one: login and CPU nodes may be on storage switches too.
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


_EVIDENCE = (
    ("name", _divide_by_name),
    ("partition", _divide_by_partition),
    ("speed", _divide_by_speed),
    ("wiring", _divide_by_wiring),
)
