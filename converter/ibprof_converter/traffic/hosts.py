# SPDX-License-Identifier: Apache-2.0
"""Find the hosts of fabrics. A host is a machine with ports on one or several subnets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ibprof.profile.missing_data import StageAccount
from ibprof.text.quantities import count_of
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.listing import PORTS
from ibprof_converter.fabric.node_names import (
    adapter_name,
    host_name,
    is_aggregation_node,
    natural_key,
    rank_names,
    show_some,
)
from ibprof_converter.traffic.traffic_data import NO_LID

NO_HOST = -1

_MOST_KINDS = 64
"""Each host's list of adapter names is compared with at most this number of the most frequent lists.

If names contain serial numbers, all lists differ, and comparisons with all lists would be slow.
"""

_MISSPELT = 0.75
"""Messages suggest a host name if its similarity to the unknown name, from 0 to 1, is at least this number."""

_MODEL_FIRST = re.compile(
    r"\s*(?:MT\d{3,5}(?![a-z0-9])"
    r"|(?:MCX\d\w*(?:-\w+)?|ConnectX-?\d*|BlueField(?:-\d)?|NVIDIA|Mellanox|HCA(?:-\d+)?|mlx\d_\d+)(?=\s|$))",
    re.IGNORECASE,
)
_MODEL_ANYWHERE = re.compile(r"\bMellanox Technologies\b|\bInfiniHost\b|\bConnectX-?\d*\b\s*$", re.IGNORECASE)
"""Matches a node description with the adapter's model, which drivers set before they know the host's name."""

_DEFAULT_NAME = re.compile(r"\s*(?:localhost(?:\.\S*)?|\((?:none|null)\))(?=\s|$)", re.IGNORECASE)
"""Matches the node description of a machine without a host name.

If only one adapter has this description, the description is used as the host's name.
"""

_ADAPTER_ENDING = re.compile(r"[-_.](?:hca|mlx\d)[-_]?\d*$", re.IGNORECASE)
"""Some sites write `host17_hca0` instead of `host17 HCA-1`."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """Machines with a port in a fabric, sorted by leaf switch, then in the natural order of their names.

    Attributes:
        name: [host], the hosts' names.
        ports: int32 [host, rail, adapter], LIDs of the host's ports, in the natural order of adapter names (`mlx5_2`
            before `mlx5_10`); `NO_LID` fills the rest of a row.
        leaf: int32 [host], index of the leaf switch of the host's first port. Leaf switches are numbered in the order
            of the hosts.
        of_node: for each rail int32 [node], host of each adapter; `NO_HOST` for all other nodes.
        shared: host names that do not identify a host, because several adapters of a rail have the same description.
        left_out: for each rail bool [node], true for adapters whose ports are left out (`Fabric.is_left_out`).
        in_turn: int32 [host, rail, turn], result of `turns`; None if no host is known to lack an adapter.
        lacking: host -> names of adapters that similar hosts have, but not this host.
        uncertain: hosts with fewer adapters than most hosts, whose adapter names do not show which adapters are
            missing.
    """

    name: tuple[str, ...]
    ports: npt.NDArray[np.int32]
    leaf: npt.NDArray[np.int32]
    of_node: tuple[npt.NDArray[np.int32], ...]
    shared: frozenset[str] = frozenset()
    left_out: tuple[npt.NDArray[np.bool_], ...] = ()
    in_turn: npt.NDArray[np.int32] | None = None
    lacking: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    uncertain: tuple[int, ...] = ()

    @property
    def turns(self) -> npt.NDArray[np.int32]:
        """LIDs of the ports that the ranks of a host use in turn: int32 [host, rail, turn], `NO_LID` fills the rest.

        In the turn of a missing adapter, ranks use a present adapter. All other turns stay the same.
        """
        return self.ports if self.in_turn is None else self.in_turn

    @property
    def rails(self) -> int:
        """Number of fabrics."""
        return len(self.of_node)

    @property
    def lid(self) -> npt.NDArray[np.int32]:
        """LID of each host's first port on each rail: int32 [host, rail], `NO_LID` if the rail has none."""
        return self.ports[:, :, 0]

    def port(
        self, host: npt.NDArray[np.integer], rail: npt.NDArray[np.integer] | int, number: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.int32]:
        """Return the LID of port `number` mod n of each host; n is the host's number of ports on the rail."""
        lid: npt.NDArray[np.int32] = self.ports[host, rail, number % np.maximum(self.adapters[host, rail], 1)]
        return lid

    @property
    def adapters(self) -> npt.NDArray[np.int64]:
        """Number of ports of each host on each rail: int64 [host, rail]."""
        return count_ports(self.ports)

    @property
    def has_several(self) -> bool:
        """True if any host has several ports on one rail."""
        return bool(self.ports.shape[2] > 1)

    def count_by_adapters(self, rail: int) -> dict[int, int]:
        """Return number of adapters on a rail -> number of hosts with this number of adapters; most adapters first."""
        of_node = self.of_node[rail]
        if self.left_out:
            of_node = of_node[~self.left_out[rail]]
        return _count_hosts(np.bincount(of_node[of_node != NO_HOST], minlength=len(self.name)))

    def count_by_ports(self, rail: int) -> dict[int, int]:
        """Return number of ports on a rail -> number of hosts with this number of ports; most ports first."""
        return _count_hosts(self.adapters[:, rail])

    @property
    def end_noun(self) -> str:
        """Noun for `ends` in messages: "ports" if any adapter has several ports on a rail, else "adapters"."""
        by_adapter = (self.count_by_adapters(rail) for rail in range(self.rails))
        by_port = (self.count_by_ports(rail) for rail in range(self.rails))
        return "adapters" if all(map(dict.__eq__, by_adapter, by_port)) else "ports"

    @property
    def ends(self) -> npt.NDArray[np.int32]:
        """LIDs of all hosts' ports, grouped by host: int32 [end, rail].

        End i of a host is the host's port i on each rail; `NO_LID` on rails with fewer ports.
        """
        by_end = self.ports.transpose(0, 2, 1).reshape(-1, self.rails)
        ends: npt.NDArray[np.int32] = by_end[(by_end != NO_LID).any(axis=1)]
        return ends


def _count_hosts(having: npt.NDArray[np.integer]) -> dict[int, int]:
    """Return value -> number of hosts with this value; the largest value comes first, the value 0 is left out."""
    numbers, hosts = np.unique(having, return_counts=True)
    return {number: host for number, host in zip(numbers.tolist()[::-1], hosts.tolist()[::-1], strict=True) if number}


def count_ports(ports: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the number of LIDs along the last axis; `NO_LID` is not counted."""
    return np.asarray((ports != NO_LID).sum(axis=-1), np.int64)


class HostIndex:
    """Finds a host by its name in a recording, a file or another rail.

    A name is compared exactly first, then without regard to case. Names with and without a domain match if they are
    equal up to the first dot. For example, `host17` matches `host17.cluster.example`. But `host17` never matches
    `host1`, and `host17.a.example` never matches `host17.b.example`.

    Args:
        shared: names that identify no single host.
    """

    def __init__(self, names: Iterable[str], shared: Iterable[str] = ()) -> None:
        self._exact: dict[str, list[int]] = {}
        self._folded: dict[str, list[int]] = {}
        self._short: dict[str, list[int]] = {}
        self._shared = frozenset(name.casefold() for name in shared)
        for index, name in enumerate(names):
            key = name.casefold()
            self._exact.setdefault(name, []).append(index)
            self._folded.setdefault(key, []).append(index)
            self._short.setdefault(_without_domain(key), []).append(index)

    def find(self, name: str) -> int | None:
        """Return the index of the host with a name; None if no host or several hosts match."""
        found = self._find_all(name)
        return found[0] if len(found) == 1 else None

    def describe_unknown(self, name: str) -> str:
        """Return the end of a message on an unknown name: the reason, or the most similar name. It may be empty."""
        if self.is_shared(name):
            return ", a name that several adapters share"
        likely = get_close_matches(name, self._exact, 1, _MISSPELT)
        return f"; did you mean {likely[0]}?" if likely else ""

    def is_shared(self, name: str) -> bool:
        """Return true if a name identifies no host: several hosts match, or several adapters share the name."""
        return len(self._find_all(name)) > 1 or name.casefold() in self._shared

    def _find_all(self, name: str) -> list[int]:
        if name in self._exact:
            return self._exact[name]
        key = name.casefold()
        if key in self._folded:
            return self._folded[key]
        short = _without_domain(key)
        return self._short.get(key, []) if short == key else self._folded.get(short, [])


def _without_domain(name: str) -> str:
    # An IP address stays whole: its first part is not a host name.
    return name if name.replace(".", "").isdigit() else name.split(".", 1)[0]


def find_hosts(fabrics: Sequence[Fabric], rule: re.Pattern[str] | None = None) -> Hosts:
    """Return the hosts of one system, whose rails are `fabrics`. `HostIndex` matches host names between rails.

    The result has no ports of left-out adapters (`Fabric.is_left_out`). A host that has only left-out adapters is not
    returned.

    Args:
        rule: pattern that finds the host's name in a node description: its first group, or the whole match. Without a
            rule or a match, the name is the description's first word without an adapter suffix.
    """
    return _find_hosts(tuple(fabrics), rule)


# Cache the hosts: a report needs them several times, and 65,536 adapters take half a second.
@lru_cache(maxsize=1)
def _find_hosts(fabrics: tuple[Fabric, ...], rule: re.Pattern[str] | None) -> Hosts:
    adapters: dict[str, list[tuple[int, int]]] = {}
    unused: dict[str, list[tuple[int, int]]] = {}
    lids: dict[str, list[list[int]]] = {}
    leaves: dict[str, tuple[int, int]] = {}
    shared: set[str] = set()
    whole: dict[str, str] = {}  # host name without a domain -> the name with a domain
    for rail, fabric in enumerate(fabrics):
        repeated = _repeated_descriptions(fabric)
        shared.update(word_of(description, rule) for description in repeated)
        port, leaf = _find_host_ports(fabric)
        nodes = fabric.port_node[port].tolist()
        names = [_name_of(fabric, node, repeated, rule) for node in nodes]
        # All planes have the same hosts, so their host names need no matching.
        known_as = {} if not leaves or leaves.keys() >= set(names) else _match_names(list(leaves), set(names))
        # If the first rail has gpu1, and a later rail has gpu1.a and gpu1.b, then gpu1.a and gpu1.b are two hosts.
        known_as = {
            name: host
            for name, host in known_as.items()
            if _without_domain(name) == name or whole.setdefault(host, name.casefold()) == name.casefold()
        }
        for written, node, lid, switch in zip(names, nodes, fabric.port_lid[port].tolist(), leaf.tolist(), strict=True):
            name = known_as.get(written, written)
            if fabric.is_left_out[node]:
                unused.setdefault(name, []).append((rail, node))
                continue
            adapters.setdefault(name, []).append((rail, node))
            lids.setdefault(name, [[] for _ in fabrics])[rail].append(lid)
            leaves.setdefault(name, (rail, switch))
    order, leaf_number = _order_by_leaf(leaves)
    of_node = tuple(np.full(fabric.nodes, NO_HOST, np.int32) for fabric in fabrics)
    for host, name in enumerate(order):
        for rail, node in adapters[name]:
            of_node[rail][node] = host
        for rail, node in unused.get(name, ()):
            of_node[rail][node] = host
    found = Hosts(
        name=tuple(order),
        ports=stack_ports([lids[name] for name in order], len(fabrics)),
        leaf=leaf_number,
        of_node=of_node,
        shared=frozenset(shared),
        left_out=tuple(fabric.is_left_out for fabric in fabrics) if unused else (),
    )
    return _find_turns(found, fabrics)


def _find_turns(hosts: Hosts, fabrics: Sequence[Fabric]) -> Hosts:
    uneven = [rail for rail, count in enumerate(hosts.adapters.T) if 2 < count.max(initial=0) != count.min()]
    if not uneven:
        return hosts
    turns = [[[lid for lid in own if lid != NO_LID] for own in by_rail] for by_rail in hosts.ports.tolist()]
    lacking: dict[int, tuple[str, ...]] = {}
    uncertain: dict[int, None] = {}
    for rail in uneven:
        fabric, having = fabrics[rail], hosts.count_by_ports(rail)
        names = [
            tuple(adapter_name(fabric.node_name[fabric.lid_node[lid]], host) for lid in by_rail[rail])
            for host, by_rail in zip(hosts.name, turns, strict=True)
        ]
        kinds = Counter(names)
        whole_of = {own: _find_whole(own, kinds) for own in kinds}
        for host, own in enumerate(names):
            if whole := whole_of[own]:
                lids = turns[host][rail]
                lid_of = dict(zip(_number_equal(own), lids, strict=True))
                row = [lid_of.get(each, lids[turn % len(lids)]) for turn, each in enumerate(_number_equal(whole))]
                turns[host][rail] = row
                lost = (name for name, number in _number_equal(whole) if (name, number) not in lid_of)
                lacking[host] = tuple(dict.fromkeys((*lacking.get(host, ()), *lost)))
            elif any(_lacks_few(len(own), each) and number >= having[len(own)] for each, number in having.items()):
                uncertain[host] = None
    if not lacking:
        return replace(hosts, uncertain=tuple(uncertain))
    return replace(hosts, in_turn=stack_ports(turns, hosts.rails), lacking=lacking, uncertain=tuple(uncertain))


def _find_whole(own: tuple[str, ...], kinds: Counter[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return a list with all names of `own` and more, if at least as many hosts have this list as `own`; else None."""
    wholes = [
        kind
        for kind, number in kinds.most_common(_MOST_KINDS)
        if number >= kinds[own] and _lacks_few(len(own), len(kind)) and _are_distinct(kind)
    ]
    return next((kind for kind in wholes if set(_number_equal(own)) < set(_number_equal(kind))), None)


def _lacks_few(count: int, whole: int) -> bool:
    return 1 < count < whole <= count + max(1, whole // 4)


def _are_distinct(names: tuple[str, ...]) -> bool:
    """Return true if names distinguish adapters. A name may occur twice: an adapter can have two ports in a subnet."""
    return all(names) and len(names) <= 2 * len(set(names))


def _number_equal(names: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return each name with the number of equal names before it."""
    return [(name, names[:place].count(name)) for place, name in enumerate(names)]


def describe_lacking(hosts: Hosts, used: Collection[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Describe the hosts in `used` that lack adapters. Call this only if ranks use a host's adapters in turn.

    The first tuple has a note on hosts whose missing adapters are known. The second tuple has a sentence on hosts whose
    missing adapters are unknown. A tuple without hosts is empty.
    """
    known = [f"{hosts.name[each]}: {', '.join(names)}" for each, names in hosts.lacking.items() if each in used]
    unknown = [hosts.name[each] for each in hosts.uncertain if each in used]
    notes = (f"some hosts lack adapters that similar hosts have ({show_some(known)}): their ranks use other adapters",)
    doubts = (
        f"{count_of(len(unknown), 'host')} with fewer adapters than others ({show_some(unknown)}): names do not show "
        "which adapters are missing. The ranks of these hosts take the present adapters in turn.",
    )
    return notes if known else (), doubts if unknown else ()


def stack_ports(lids: Sequence[Sequence[Sequence[int]]], rails: int) -> npt.NDArray[np.int32]:
    """Return LIDs as one array: int32 [machine, rail, adapter], `NO_LID` fills the rest.

    Args:
        lids: for each machine and rail, the LIDs of the machine's ports.
    """
    most = max((len(some) for by_rail in lids for some in by_rail), default=0)
    ports = np.full((len(lids), rails, max(most, 1)), NO_LID, np.int32)
    for machine, by_rail in enumerate(lids):
        for rail, some in enumerate(by_rail):
            ports[machine, rail, : len(some)] = some
    return ports


def _find_host_ports(fabric: Fabric) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int32]]:
    """Return the hosts' cabled ports, in natural order of adapter names, and the node to which each port is cabled."""
    end = fabric.link_node.ravel() * PORTS + fabric.link_port.ravel()
    order = np.argsort(end)
    port = np.lexsort((fabric.port_number, rank_names(fabric.node_name)[fabric.port_node]))
    wanted = fabric.port_node[port] * PORTS + fabric.port_number[port]
    place = np.searchsorted(end, wanted, sorter=order)
    at = order[np.minimum(place, len(order) - 1)]
    chosen = (end[at] == wanted) & find_adapters(fabric)[fabric.port_node[port]]
    return port[chosen], fabric.link_node[:, ::-1].ravel()[at[chosen]]


def _match_names(known: list[str], names: set[str]) -> dict[str, str]:
    """Map each name in `names` to the name of the same host in `known`; each host is used for one name only."""
    index = HostIndex(known)
    found = {name: host for name in names if (host := index.find(name)) is not None}
    claims = Counter(found.values())
    return {name: known[host] for name, host in found.items() if claims[host] == 1 or name == known[host]}


def find_adapters(fabric: Fabric) -> npt.NDArray[np.bool_]:
    """Return the nodes that are adapters of machines, not switches, routers or aggregation nodes: bool [node]."""
    is_adapter: npt.NDArray[np.bool_] = fabric.node_kind == NodeKind.CA
    aggregates = [node for node in np.flatnonzero(is_adapter).tolist() if is_aggregation_node(fabric.node_name[node])]
    is_adapter[aggregates] = False
    return is_adapter


def _name_of(fabric: Fabric, node: int, repeated: set[str], rule: re.Pattern[str] | None) -> str:
    description = fabric.node_name[node]
    word = word_of(description, rule)
    names_model = (_MODEL_FIRST.match(description) or _MODEL_ANYWHERE.search(description)) and not (
        rule is not None and rule.search(description)
    )
    is_name = bool(word) and description not in repeated and not names_model
    return word if is_name else f"0x{int(fabric.node_guid[node]):016x}"


def word_of(description: str, rule: re.Pattern[str] | None) -> str:
    """Return the host's name in an adapter's description. `rule` has the same meaning as in `find_hosts`."""
    if rule is not None and (match := rule.search(description)):
        return match[1] if rule.groups and match[1] else match[0]
    return _ADAPTER_ENDING.sub("", host_name(description))


def _repeated_descriptions(fabric: Fabric) -> set[str]:
    """Return node descriptions that several adapters have, and all default descriptions if there are several."""
    adapters = [fabric.node_name[node] for node in np.flatnonzero(fabric.node_kind == NodeKind.CA).tolist()]
    unnamed = {name for name in adapters if _DEFAULT_NAME.match(name)}
    shared = {name for name, count in Counter(adapters).items() if count > 1}
    return shared | unnamed if len(unnamed) > 1 else shared


def _order_by_leaf(leaves: dict[str, tuple[int, int]]) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Sort the hosts by leaf switch, then name; return the hosts and the index of each host's leaf switch."""
    numbers: dict[tuple[int, int], int] = {}
    by_name = sorted(leaves, key=lambda name: (natural_key(name), name))
    for name in by_name:
        numbers.setdefault(leaves[name], len(numbers))
    order = sorted(by_name, key=lambda name: numbers[leaves[name]])
    return order, np.array([numbers[leaves[name]] for name in order], np.int32)


def account_for_fabrics(fabrics: Sequence[Fabric], hosts: Hosts | None) -> Iterator[StageAccount]:
    """Yield how many links, adapters and hosts the readers of the fabrics kept and left out.

    Adapters are counted only if any adapter is left out, by `--interfaces` or by default. Hosts are counted unless
    `hosts` is None.
    """
    for fabric in fabrics:
        kept, inactive = fabric.links, len(fabric.inactive)
        yield StageAccount("read", "links", kept + inactive, kept, {"not active": inactive} if inactive else {})
    if made := next((fabric.interfaces for fabric in fabrics), None):
        left_out = {f"--interfaces {made.choice}": made.left_out}
        yield StageAccount("read", "adapters", made.adapters + made.left_out, made.adapters, left_out)
    if hosts:
        lost = find_lost_hosts(fabrics, hosts)
        yield StageAccount("read", "hosts", len(hosts.name) + len(lost), len(hosts.name), dict(Counter(lost.values())))


def find_lost_hosts(fabrics: Sequence[Fabric], hosts: Hosts) -> dict[str, str]:
    """Return name -> reason, for hosts of which the fabrics' readers left out all adapters."""
    known = HostIndex(hosts.name, hosts.shared)
    lost: dict[str, str] = {}
    for fabric in fabrics:
        for description, reason in fabric.left_out:
            name = host_name(description) or description
            if known.find(name) is None:
                lost.setdefault(name, reason)
    return lost
