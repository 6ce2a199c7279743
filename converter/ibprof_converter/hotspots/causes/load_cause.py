# SPDX-License-Identifier: Apache-2.0
"""Classes for changes to the model, for causes of load, and for the senders that load a link direction most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.row_arrays import find_distinct, number_keys
from ibprof.text.quantities import count_of, name_call, printable
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.hotspots.causes.situation import LinkDirection, Situation
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.subnet_routes import scan_flows
from ibprof_converter.traffic.link_loads import ALIKE
from ibprof_converter.traffic.traffic_data import ALL, NO_RANK, Traffic

SLOW_LINK = "slow-link"
MISSING_UPLINK = "missing-uplink"
MISSING_CABLE = "missing-cable"
FEW_LINKS = "few-links"
WRONG_CABLE = "wrong-cable"
ONE_RAIL = "one-rail"
ONE_ADAPTER = "one-adapter"
MANY_TO_FEW = "many-to-few"
FEW_TO_MANY = "few-to-many"
OVERSUBSCRIPTION = "oversubscription"
ROUTING = "routing"
PLACEMENT = "placement"

REPAIR = "repair"
RANK_ORDER = "rank-order"
ADAPTERS = "adapters"
HOSTS = "hosts"
FORWARDING_TABLES = "forwarding-tables"
PROGRAM = "program"
LINKS = "links"

KINDS = (REPAIR, RANK_ORDER, ADAPTERS, HOSTS, FORWARDING_TABLES, PROGRAM, LINKS)
"""Kinds of changes, from the cheapest to the most expensive."""

SMALL_GAIN = 0.95
"""A repair is reported if the largest link time falls to at most 0.95 times the present time."""

TABLES_GAIN = 0.9
"""Other forwarding tables are reported if the largest link time falls to at most 0.9 times the present time."""

GAIN = 0.8
"""All other changes are reported if the largest link time falls to at most 0.8 times the present time."""

NEAR_BEST = 1.05
"""A cheaper change is preferred if its link time is at most 1.05 times the link time of the best change."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change in the model.

    Attributes:
        cause: the cause that the change removes, from `SLOW_LINK` to `PLACEMENT` above.
        kind: one of `KINDS`.
        what: text that describes the change.
        after: the situation after the change; None if the change was not tried or is impossible.
        most: the change can be a remedy if largest link time after / before the change is at most this number.
        why_not: the reason why the change was not tried or cannot be a remedy; else empty.
        at, evidence, advice, change: as in `LoadCause`.
    """

    cause: str
    kind: str
    what: str
    after: Situation | None
    most: float = GAIN
    why_not: str = ""
    at: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    advice: str = ""
    change: str = ""


@dataclass(frozen=True, slots=True)
class LoadCause:
    """A cause of the largest time of a link direction.

    Attributes:
        cause: a constant from `SLOW_LINK` to `PLACEMENT` above.
        kind: the remedy's kind, one of `KINDS`.
        at: names of the affected switches, links or hosts.
        evidence: sentences with facts that show the cause.
        advice: text that describes the remedy.
        change: the remedy's exact command, setting or cable.
        max_time_s: the largest link time before the remedy.
        max_time_after_s: the predicted largest link time with the remedy.
        remedy: the situation after the remedy.
        loaded_by: main senders of the link direction with the largest time before this remedy; None if unknown.
    """

    cause: str
    kind: str
    at: tuple[str, ...]
    evidence: tuple[str, ...]
    advice: str
    change: str
    max_time_s: float
    max_time_after_s: float
    remedy: Situation
    loaded_by: LoadedBy | None = None

    def as_json(self) -> dict[str, object]:
        """Return the cause as a JSON object, without `remedy`."""
        return {
            "cause": self.cause,
            "kind": self.kind,
            "at": list(self.at),
            "evidence": list(self.evidence),
            "advice": self.advice,
            "change": self.change,
            "max_time_s": self.max_time_s,
            "max_time_after_s": self.max_time_after_s,
            "loaded_by": self.loaded_by.as_json() if self.loaded_by else None,
        }


@dataclass(frozen=True, slots=True)
class TriedChange:
    """A change that was considered as a remedy. If the change was tried, its effect is predicted.

    Attributes:
        what: text that describes the change.
        kind: one of `KINDS`.
        causes_before: number of earlier causes, whose remedies were already applied.
        max_time_after_s: predicted largest link time; None if the change was not tried or leaves bytes without a route.
        why_not: the reason why the change is not the remedy; None for the remedy.
    """

    what: str
    kind: str
    causes_before: int
    max_time_after_s: float | None
    why_not: str | None

    def as_json(self) -> dict[str, object]:
        """Return the change as a JSON object."""
        return asdict(self)


def name_node(fabric: Fabric, node: int) -> str:
    """Return a node's printable name, or the GUID of a node without a name."""
    return printable(fabric.node_name[node]) or f"0x{int(fabric.node_guid[node]):016x}"


def name_end(situation: Situation, end: LinkDirection) -> str:
    """Return a link direction's name: sender, port, receiver, and the rail if there are several."""
    fabric = situation.subnets[end.rail].fabric
    node, port = fabric.link_node[end.link], fabric.link_port[end.link]
    sender, receiver = name_node(fabric, int(node[end.end])), name_node(fabric, int(node[1 - end.end]))
    rail = f" on rail {end.rail}" if len(situation.subnets) > 1 else ""
    return f"{sender} port {int(port[end.end])} to {receiver}{rail}"


def list_some(names: list[str], limit: int = 4) -> str:
    """Return the first `limit` names as text, and the number of further names."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


@dataclass(frozen=True, slots=True)
class LoadedBy:
    """The senders of the call, site and region that load a link direction most.

    Attributes:
        ranks: number of sending ranks; None if ranks are unknown.
        hosts: number of sending adapters.
        sender, receiver: rank that sends (receives) all `bytes`; None if several or unknown ranks send (receive).
        operation, site, region: names of the MPI call, call site and region; None if unknown.
        bytes: bytes that these senders sent onto the link direction in this call, site and region.
        share: share of the link direction's bytes, 0 to 1.
        also: text on other calls with about the same load: the only other call, or their number; empty without them.
    """

    ranks: int | None
    hosts: int
    sender: int | None
    receiver: int | None
    operation: str | None
    site: str | None
    region: str | None
    bytes: int
    share: float
    also: str = ""

    @property
    def text(self) -> str:
        """Text that names the senders and their share of the link direction's bytes."""
        share = f"{self.share * 100:.0f}%"
        if self.also:
            return f"{self.words} and {self.also}, each with {share} of the bytes on the link"
        return self.words if share == "100%" else f"{self.words}, {share} of the bytes on the link"

    @property
    def words(self) -> str:
        """Text that names the senders, without their share."""
        number, noun = (self.hosts, "host") if self.ranks is None else (self.ranks, "rank")
        words = count_of(number, noun) if self.sender is None else f"rank {self.sender}"
        if self.operation:
            words += f"{chr(39) if number != 1 else chr(39) + 's'} {self.operation}"
        words += f" at {self.site}" if self.site else ""
        words += f" in '{self.region}'" if self.region else ""
        return words + (f" to rank {self.receiver}" if self.receiver is not None else "")

    def as_json(self) -> dict[str, object]:
        """Return the senders as a JSON object."""
        return asdict(self) | {"text": self.text}


@dataclass(frozen=True, slots=True)
class AlikeLinks:
    """Number and kind of the link directions with about the largest link time."""

    count: int
    kind: str

    @property
    def text(self) -> str:
        """Text that states the number and kind of the link directions."""
        return f"{count_of(self.count, 'link')}{self.kind.removeprefix('links')} alike"

    def as_json(self) -> dict[str, object]:
        """Return the number and kind of the link directions as a JSON object."""
        return asdict(self) | {"text": self.text}


def find_loaders(traffic: Traffic, subnets: Sequence[Subnet], direction: LinkDirection) -> LoadedBy | None:
    """Return the senders of the region, operation and call site that load a link direction most.

    Returns:
        None if no flow uses the link direction.
    """
    here = np.flatnonzero(traffic.rail == direction.rail)
    routes = subnets[direction.rail].routes
    end = 2 * direction.link + direction.end
    (rows,) = scan_flows(routes, traffic.source_lid[here], traffic.destination_lid[here], [end])
    flows = traffic.take(here[rows])
    total = sum_exactly(flows.bytes)
    if not total:
        return None
    site = flows.site if len(flows.sites) > 1 else np.zeros(len(flows.bytes), np.int32)
    calls = flows.operation.astype(np.int64) * len(flows.sites) + site
    _, inverse = number_keys(flows.region.astype(np.int64) * (len(flows.operations) * len(flows.sites)) + calls)
    sums = np.bincount(inverse, weights=flows.bytes.astype(np.float64))
    first = int(sums.argmax())
    others = [each for each in np.flatnonzero(sums >= ALIKE * sums[first]).tolist() if each != first]
    loaders = _describe_group(flows, np.flatnonzero(inverse == first), total)
    if len(others) == 1:
        return replace(loaders, also=_describe_group(flows, np.flatnonzero(inverse == others[0]), total).words)
    return replace(loaders, also=count_of(len(others), "other call") if others else "")


def _describe_group(flows: Traffic, chosen: npt.NDArray[np.intp], total: int) -> LoadedBy:
    """Describe the senders of flows that have the same region, operation and call site."""
    amount = sum_exactly(flows.bytes[chosen])
    senders = np.unique(flows.source_rank[chosen])
    receivers = np.unique(flows.destination_rank[chosen])
    has_ranks = bool((senders != NO_RANK).all() and (receivers != NO_RANK).all())
    sender, receiver = (
        flows.job_of_rank(int(ranks[0]))[1] if has_ranks and len(ranks) == 1 else None for ranks in (senders, receivers)
    )
    first = int(chosen[0])
    operation = flows.operations[flows.operation[first]]
    return LoadedBy(
        ranks=len(senders) if has_ranks else None,
        hosts=len(find_distinct(flows.source_lid[chosen])),
        sender=sender,
        receiver=receiver,
        operation=None if operation == ALL else name_call(operation),
        site=_name(flows.sites[int(flows.site[first]) if len(flows.sites) > 1 else 0]),
        region=_name(flows.regions[flows.region[first]]),
        bytes=amount,
        share=amount / total,
    )


def find_alike(situation: Situation) -> AlikeLinks:
    """Count the link directions that join the most loaded direction's levels and need about the same time."""
    kind = _kind_of(situation, situation.most_loaded())
    least = ALIKE * situation.max_seconds
    count = 0
    for subnet, level, seconds in zip(situation.subnets, situation.levels, situation.seconds, strict=True):
        levels = level[subnet.fabric.link_node]
        is_kind = (levels == kind[0]) & (levels[:, ::-1] == kind[1])
        count += int((is_kind & (seconds >= least)).sum())
    lower, upper = kind
    if 0 in kind:
        return AlikeLinks(count, "links from hosts" if lower == 0 else "links to hosts")
    return AlikeLinks(count, f"links from level {lower} to level {upper}")


def _kind_of(situation: Situation, end: LinkDirection) -> tuple[int, int]:
    level = situation.levels[end.rail]
    node = situation.subnets[end.rail].fabric.link_node[end.link]
    return int(level[node[end.end]]), int(level[node[1 - end.end]])


def _name(name: str) -> str | None:
    return None if name == ALL else printable(name)
