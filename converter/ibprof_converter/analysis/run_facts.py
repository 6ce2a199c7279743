# SPDX-License-Identifier: Apache-2.0
"""Collect facts on a run: links, ranks, hosts and calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.row_arrays import add_by_key, number_keys
from ibprof.text.quantities import name_call
from ibprof_converter.analysis.pipeline_results import FabricLoads
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.hotspots.hot_links import HOST_LINK
from ibprof_converter.hotspots.link_report import LinkReport
from ibprof_converter.hotspots.run_sums import add_by
from ibprof_converter.traffic.link_loads import STATIC
from ibprof_converter.traffic.traffic_data import ALL, NO_LID, RankTraffic, Traffic

_MOST = 0.5


@dataclass(frozen=True, slots=True)
class LoadedDirection:
    """A link direction of a run.

    Attributes:
        rail: index of the fabric.
        sender, receiver: names of the two nodes.
        port, far_port: port numbers of the sender and the receiver.
        bytes: bytes sent in this direction.
        seconds: time of these bytes at line rate, in seconds; None if the speed is unknown.
        call: the call that sends more than half of the bytes, with its line if known; empty without such a call.
        guid: the sender's GUID, as in a report.
        is_host_link: true for a host's own link.
        operations: bytes of the operations that load the direction most, as in a report; empty if unknown.
    """

    rail: int
    sender: str
    port: int
    receiver: str
    far_port: int
    bytes: int
    seconds: float | None
    guid: str
    is_host_link: bool
    call: str = ""
    operations: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> tuple[int, str, int]:
        """Rail, sender and port: these identify the direction in another run on the same fabric."""
        return self.rail, self.sender, self.port

    @property
    def name(self) -> str:
        """The direction's name in a sentence."""
        return f"{self.sender} port {self.port} to {self.receiver}"

    def as_json(self) -> dict[str, object]:
        """Return the direction as plain values."""
        return asdict(self) | {"name": self.name}

    def find_in(self, directions: Iterable[LoadedDirection]) -> LoadedDirection | None:
        """Return this link direction of another run; None if it is not in `directions`."""
        return next((each for each in directions if each.key == self.key), None)


@dataclass(frozen=True, slots=True)
class RankPairs:
    """Bytes of pairs of ranks.

    Attributes:
        key: int64, sender * 2^32 + receiver, ascending.
        bytes: uint64, bytes of each pair.
    """

    key: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.uint64]

    @classmethod
    def of_ranks(
        cls,
        source: npt.NDArray[np.integer],
        destination: npt.NDArray[np.integer],
        amounts: npt.NDArray[np.uint64],
    ) -> RankPairs:
        """Sum the bytes of each pair of ranks."""
        return cls(*add_by_key(source.astype(np.int64) << 32 | destination.astype(np.int64), amounts))

    def by_name(self) -> dict[str, int]:
        """Return the bytes of each pair, by `SENDER -> RECEIVER`."""
        ranks = ((key >> 32, key & 0xFFFFFFFF) for key in self.key.tolist())
        return {
            f"{source} -> {receiver}": each for (source, receiver), each in zip(ranks, self.bytes.tolist(), strict=True)
        }

    def differ(self, other: RankPairs) -> int:
        """Return the sum, over all pairs of ranks, of the absolute difference in bytes between two runs."""
        key, inverse = number_keys(np.concatenate([self.key, other.key]))
        sums = np.zeros((2, len(key)), np.uint64)
        sums[0, inverse[: len(self.key)]] = self.bytes
        sums[1, inverse[len(self.key) :]] = other.bytes
        return sum_exactly(sums.max(axis=0) - sums.min(axis=0))


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts on a run that can explain why its link loads differ from another run's.

    Attributes:
        ranks: number of the job's ranks; None if unknown.
        bytes: sent bytes; None if only link loads are known.
        operations: bytes by operation; empty if unknown.
        pairs: bytes by pair of ranks; None if unknown.
        rank_host: the name of each rank's host; None if unknown.
        most_loaded: the most loaded link directions, sorted by time at line rate; None without a fabric.
        carried: `LoadedDirection.key` -> bytes, for link directions whose bytes are known.
        knows_all_links: true if link directions missing in `carried` carry no bytes.
        ranks_at: name of an adapter or leaf switch -> number of ranks at the adapter or below the switch.
        links: number of links of the fabric; None if unknown.
        fabric: identifier of the fabric and its forwarding tables; None if unknown.
        load_basis: `static` or `estimate`, as in a report.
    """

    ranks: int | None = None
    bytes: int | None = None
    operations: Mapping[str, int] = field(default_factory=dict)
    pairs: RankPairs | None = None
    rank_host: tuple[str | None, ...] | None = None
    most_loaded: tuple[LoadedDirection, ...] | None = None
    carried: Mapping[tuple[int, str, int], int] = field(default_factory=dict)
    knows_all_links: bool = False
    ranks_at: Mapping[str, int] = field(default_factory=dict)
    links: int | None = None
    fabric: object = None
    load_basis: str = STATIC

    @property
    def busiest(self) -> LoadedDirection | None:
        """The most loaded link direction; None if links are unknown, or no link is loaded."""
        return self.most_loaded[0] if self.most_loaded else None

    def carried_on(self, direction: LoadedDirection) -> int | None:
        """Return this run's bytes on a link direction of another run; None if unknown."""
        return self.carried.get(direction.key, 0 if self.knows_all_links else None)

    def operations_on(self, direction: LoadedDirection) -> Mapping[str, int] | None:
        """Return this run's bytes of each operation on a link direction of another run; None if unknown."""
        if self.carried_on(direction) == 0:
            return {}
        own = direction.find_in(self.most_loaded or ())
        return own.operations or None if own else None


def facts_of_loads(loads: FabricLoads, links: LinkReport) -> RunFacts:
    """Return the facts of a run on a fabric.

    Args:
        links: the report on the links of `loads`.
    """
    demand, traffic = loads.demand, loads.traffic
    most_loaded = tuple(direction_of_hotspot(asdict(spot)) for spot in links.hotspots)
    is_static = links.load_basis == STATIC
    rows = list_directions(loads.rows(only_used=True)) if is_static else ()
    return RunFacts(
        ranks=len(traffic.rank_lid) or None if traffic else None,
        bytes=sum_exactly(demand.bytes) if demand else None,
        operations=sum_operations(demand) if demand else {},
        pairs=RankPairs.of_ranks(demand.source, demand.destination, demand.bytes) if demand else None,
        rank_host=_find_rank_hosts(loads, traffic) if traffic and len(traffic.rank_lid) else None,
        most_loaded=most_loaded,
        carried={each.key: each.bytes for each in most_loaded} | add_up_directions(rows),
        knows_all_links=is_static,
        ranks_at=_count_ranks(loads, traffic) if traffic and len(traffic.rank_lid) else {},
        links=links.heat.links,
        fabric=id(loads.fabric),
        load_basis=links.load_basis,
    )


def sum_operations(demand: RankTraffic) -> dict[str, int]:
    """Return the bytes of each operation; empty if the traffic does not record operations."""
    sums = add_by(demand.operation, demand.bytes, len(demand.operations))
    return {name: amount for name, amount in zip(demand.operations, sums.tolist(), strict=True) if name != ALL}


def direction_of_hotspot(spot: Mapping[str, Any]) -> LoadedDirection:
    """Return the link direction of a hotspot, which is from a report, or the fields of a `Hotspot`."""
    link = spot.get("link", spot)
    sender, receiver = (link["a"], link["b"]) if spot["end"] == "a" else (link["b"], link["a"])
    contributors = spot.get("contributors") or {}
    return LoadedDirection(
        rail=link["rail"],
        sender=sender["name"] or sender["guid"],
        port=sender["port"],
        receiver=receiver["name"] or receiver["guid"],
        far_port=receiver["port"],
        bytes=spot["bytes"],
        seconds=spot.get("line_rate_s", spot.get("least_time_s")),
        guid=sender["guid"],
        is_host_link=link["kind"] == HOST_LINK,
        call=_name_largest_call(contributors.get("operations", ()), contributors.get("sites", ())),
        operations={each["name"]: each["bytes"] for each in contributors.get("operations", ()) if each["name"] != ALL},
    )


def _name_largest_call(operations: Any, sites: Any) -> str:
    """Return the call that sends more than half of a link direction's bytes; empty without such a call.

    The line is added if the shares prove that the call on this line sends more than half.
    """
    operation, site = (next(iter(each), None) for each in (operations, sites))
    if operation is None or operation["name"] == ALL or operation["share"] <= _MOST:
        return ""
    name = name_call(operation["name"])
    if site is None or site["name"] == ALL or site["share"] + operation["share"] - 1 <= _MOST:
        return name
    return f"{name} at {site['name']}"


def list_directions(rows: Iterable[Mapping[str, Any]]) -> list[LoadedDirection]:
    """Return the loaded link directions of a links.csv; sum the rows of each direction."""
    found: dict[tuple[object, ...], LoadedDirection] = {}
    for row in rows:
        gbps = float(row["gbps"] or "nan")
        for near, far in (("a", "b"), ("b", "a")):
            if amount := int(row[f"{near}_bytes"]):
                direction = LoadedDirection(
                    rail=int(row["rail"]),
                    sender=row[f"{near}_name"] or row[f"{near}_guid"],
                    port=int(row[f"{near}_port"]),
                    receiver=row[f"{far}_name"] or row[f"{far}_guid"],
                    far_port=int(row[f"{far}_port"]),
                    bytes=amount,
                    seconds=None,
                    guid=row[f"{near}_guid"],
                    is_host_link=str(row["a_level"]) == "0",
                )
                # Group by more than the key: two senders can have equal names.
                key = (*direction.key, direction.receiver, direction.far_port)
                amount += found[key].bytes if key in found else 0
                seconds = amount / gbps * 8e-9 if gbps > 0 else None
                found[key] = replace(direction, bytes=amount, seconds=seconds)
    return list(found.values())


def add_up_directions(directions: Iterable[LoadedDirection]) -> dict[tuple[int, str, int], int]:
    """Map each `LoadedDirection.key` to the sum of the bytes of its link directions."""
    carried: Counter[tuple[int, str, int]] = Counter()
    for each in directions:
        carried[each.key] += each.bytes
    return dict(carried)


def sort_by_time(directions: Iterable[LoadedDirection]) -> list[LoadedDirection]:
    """Return link directions in the order of `rank_directions`."""
    found = list(directions)
    by_time = any(each.seconds for each in found)

    def key(each: LoadedDirection) -> tuple[float, bool, int, str, int]:
        return (
            -(each.seconds or 0) if by_time else -each.bytes,
            not each.is_host_link,
            -each.bytes,
            each.guid,
            each.port,
        )

    return sorted(found, key=key)


def _find_rank_hosts(loads: FabricLoads, traffic: Traffic) -> tuple[str | None, ...]:
    fabric = loads.fabric
    hosts: list[str | None] = [None] * len(traffic.rank_lid)
    for rail, subnet in reversed(list(enumerate(fabric.subnets))):
        for rank, lid in enumerate(traffic.rank_lid[:, rail].tolist()):
            node = int(subnet.fabric.lid_node[lid]) if lid != NO_LID else -1
            if node >= 0 and (host := int(fabric.hosts.of_node[rail][node])) >= 0:
                hosts[rank] = fabric.hosts.name[host]
    return tuple(hosts)


def _count_ranks(loads: FabricLoads, traffic: Traffic) -> dict[str, int]:
    """Return the number of ranks at each adapter, and below each switch to which adapters are cabled."""
    counts: Counter[str] = Counter()
    for rail, subnet in enumerate(loads.fabric.subnets):
        fabric = subnet.fabric
        lid = traffic.rank_lid[:, rail]
        nodes = fabric.lid_node[lid[lid != NO_LID]]
        at = np.bincount(nodes[nodes >= 0], minlength=fabric.nodes)
        for node in np.flatnonzero(at).tolist():
            counts[fabric.node_name[node]] += int(at[node])
        for node, leaf in _list_leaves(fabric, at):
            counts[fabric.node_name[leaf]] += int(at[node])
    return dict(counts)


def _list_leaves(fabric: Fabric, at: npt.NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Yield each pair of an adapter with ranks, and a switch with a link to this adapter, once."""
    pairs = np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]])
    used = (at[pairs[:, 0]] > 0) & (fabric.node_kind[pairs[:, 1]] == NodeKind.SWITCH)
    yield from ((node, leaf) for node, leaf in np.unique(pairs[used], axis=0).tolist())
