# SPDX-License-Identifier: Apache-2.0
"""Ranks, call, line and region that load a link direction most, and equally busy link directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.row_arrays import find_distinct, number_keys
from ibprof.text.quantities import count_of, name_call, printable
from ibprof_converter.hotspots.causes.situation import LinkDirection, Situation
from ibprof_converter.hotspots.link_order import ALIKE
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.subnet_routes import scan_flows
from ibprof_converter.traffic.traffic_data import ALL, NO_RANK, Traffic


@dataclass(frozen=True, slots=True)
class LoadedBy:
    """The senders that load a link direction most.

    Attributes:
        ranks: number of sending ranks; None if the traffic has no ranks.
        hosts: number of sending adapters.
        receiver: the rank that receives all of the bytes; None for several ranks, or unknown ranks.
        operation, site, region: names; None if unknown.
        bytes: bytes of these senders in this call, line and region.
        share: share of the link direction's bytes, 0 to 1.
        also: other senders, call, line and region with an equal load, in words; empty without any.
    """

    ranks: int | None
    hosts: int
    receiver: int | None
    operation: str | None
    site: str | None
    region: str | None
    bytes: int
    share: float
    also: str = ""

    @property
    def text(self) -> str:
        """The senders in words."""
        share = f"{self.share * 100:.0f}%"
        if self.also:
            return f"{self.words} and {self.also}, {share} of its bytes each"
        return self.words if share == "100%" else f"{self.words}, {share} of its bytes"

    @property
    def words(self) -> str:
        """The senders in words, without their share."""
        number, noun = (self.hosts, "host") if self.ranks is None else (self.ranks, "rank")
        words = count_of(number, noun)
        if self.operation:
            words += f"{chr(39) if number != 1 else chr(39) + 's'} {self.operation}"
        words += f" at {self.site}" if self.site else ""
        words += f" in '{self.region}'" if self.region else ""
        return words + (f" to rank {self.receiver}" if self.receiver is not None else "")

    def as_json(self) -> dict[str, object]:
        """Return the senders as plain values."""
        return asdict(self) | {"text": self.text}


@dataclass(frozen=True, slots=True)
class AlikeLinks:
    """Link directions of one kind that are as busy as the busiest: their number, and the kind in words."""

    count: int
    kind: str

    @property
    def text(self) -> str:
        """The number and the kind in words."""
        return f"{self.count} {self.kind} alike"

    def as_json(self) -> dict[str, object]:
        """Return the links as plain values."""
        return asdict(self) | {"text": self.text}


def find_loaders(traffic: Traffic, subnets: Sequence[Subnet], direction: LinkDirection) -> LoadedBy | None:
    """Return the senders of the region, operation and call site that load a link direction most.

    Returns:
        None if no flow's route passes the link.
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
    """Return the senders of flows of one region, operation and site."""
    amount = sum_exactly(flows.bytes[chosen])
    senders = np.unique(flows.source_rank[chosen])
    receivers = np.unique(flows.destination_rank[chosen])
    has_ranks = bool((senders != NO_RANK).all() and (receivers != NO_RANK).all())
    first = int(chosen[0])
    operation = flows.operations[flows.operation[first]]
    return LoadedBy(
        ranks=len(senders) if has_ranks else None,
        hosts=len(find_distinct(flows.source_lid[chosen])),
        receiver=flows.job_of_rank(int(receivers[0]))[1] if has_ranks and len(receivers) == 1 else None,
        operation=None if operation == ALL else name_call(operation),
        site=_name(flows.sites[int(flows.site[first]) if len(flows.sites) > 1 else 0]),
        region=_name(flows.regions[flows.region[first]]),
        bytes=amount,
        share=amount / total,
    )


def find_alike(situation: Situation) -> AlikeLinks:
    """Return the number of link directions that are as busy as the busiest of their kind."""
    kind = _kind_of(situation, situation.most_loaded())
    least = ALIKE * situation.max_seconds
    count = 0
    for rail, seconds in enumerate(situation.seconds):
        for link, end in np.argwhere(seconds >= least).tolist():
            count += _kind_of(situation, LinkDirection(rail, link, end)) == kind
    lower, upper = kind
    if 0 in kind:
        return AlikeLinks(count, "links from hosts" if lower == 0 else "links to hosts")
    return AlikeLinks(count, f"links from level {lower} to level {upper}")


def _kind_of(situation: Situation, end: LinkDirection) -> tuple[int, int]:
    """Return the levels of the sender and the receiver."""
    level = situation.levels[end.rail]
    node = situation.subnets[end.rail].fabric.link_node[end.link]
    return int(level[node[end.end]]), int(level[node[1 - end.end]])


def _name(name: str) -> str | None:
    return None if name == ALL else printable(name)
