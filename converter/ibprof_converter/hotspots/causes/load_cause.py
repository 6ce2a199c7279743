# SPDX-License-Identifier: Apache-2.0
"""A change applied to the model, and the cause that it names."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ibprof.text.quantities import printable
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.hotspots.causes.loaded_by import LoadedBy
from ibprof_converter.hotspots.causes.situation import LinkDirection, Situation

SLOW_LINK = "slow-link"
MISSING_UPLINK = "missing-uplink"
MISSING_CABLE = "missing-cable"
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
"""Kinds of changes, the cheapest first; repairs come before all others."""

SMALL_GAIN = 0.95
"""A repair is reported if it leaves at most this share of the largest time."""

TABLES_GAIN = 0.9
"""Largest share of the largest time that other forwarding tables may leave."""

GAIN = 0.8
"""Largest share that any other change may leave: another placement, other receivers, more links."""

NEAR_BEST = 1.05
"""A cheaper change is preferred if its time is at most this multiple of the best predicted time."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change in the model.

    Attributes:
        cause: the cause that the change removes, one of the names above.
        kind: one of `KINDS`.
        what: the change, in words.
        after: the situation with the change; None if the change was not tried or is impossible.
        most: the largest share of the largest time that the change may leave.
        why_not: the reason why the change was not tried, or cannot be a remedy.
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
        cause: one of the names above.
        kind: the remedy's kind, one of `KINDS`.
        at: the switches, links or hosts concerned.
        evidence: sentences with facts that show the cause.
        advice: the remedy, in words.
        change: the exact command, setting or cable.
        max_time_s: the largest time before the remedy.
        max_time_after_s: the predicted largest time with the remedy.
        remedy: the situation with the remedy.
        loaded_by: senders of the link direction that is busiest before this remedy; None if unknown.
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
        """Return the cause as plain values, without the remedy."""
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
    """A change that was applied to the model, or was not tried.

    Attributes:
        what: the change, in words.
        kind: one of `KINDS`.
        causes_before: number of causes whose remedies were applied before.
        max_time_after_s: predicted largest time; None if the change was not tried.
        why_not: the reason why the change is not the remedy; None for the remedy.
    """

    what: str
    kind: str
    causes_before: int
    max_time_after_s: float | None
    why_not: str | None

    def as_json(self) -> dict[str, object]:
        """Return the change as plain values."""
        return asdict(self)


def name_node(fabric: Fabric, node: int) -> str:
    """Return a node's name for a sentence."""
    return printable(fabric.node_name[node]) or f"0x{int(fabric.node_guid[node]):016x}"


def name_end(situation: Situation, end: LinkDirection) -> str:
    """Return a link direction's name: sender, port, receiver, and the rail if there are several."""
    fabric = situation.subnets[end.rail].fabric
    node, port = fabric.link_node[end.link], fabric.link_port[end.link]
    sender, receiver = name_node(fabric, int(node[end.end])), name_node(fabric, int(node[1 - end.end]))
    rail = f" on rail {end.rail}" if len(situation.subnets) > 1 else ""
    return f"{sender} port {int(port[end.end])} to {receiver}{rail}"


def list_some(names: list[str], limit: int = 4) -> str:
    """Return names as a list for a sentence."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
