# SPDX-License-Identifier: Apache-2.0
"""A cause that was found, with what it rests on and what its remedy would change."""

from __future__ import annotations

from dataclasses import dataclass

from ibprof.text.quantities import printable
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.hotspots.causes.situation import LinkDirection, Situation

SLOW_LINK = "slow-link"
ONE_RAIL = "one-rail"
MANY_TO_FEW = "many-to-few"
FEW_TO_MANY = "few-to-many"
MISSING_UPLINK = "missing-uplink"
OVERSUBSCRIPTION = "oversubscription"
ROUTING = "routing"
PLACEMENT = "placement"

SMALL_GAIN = 0.95
"""Share of the largest time that a repair of a single cable must leave at most, to be reported."""

GAIN = 0.8
"""The same for remedies that are no repair: another placement, other receivers, more cables."""


@dataclass(frozen=True, slots=True)
class LoadCause:
    """A cause of the largest time of a link direction.

    Attributes:
        cause: one of the names above.
        at: switches, links or hosts that it is at.
        evidence: what it rests on, a sentence each.
        advice: what to do, in words.
        max_time_s: the largest time as it is.
        max_time_after_s: what the remedy is predicted to leave of it.
        remedy: what the remedy was tried out as.
    """

    cause: str
    at: tuple[str, ...]
    evidence: tuple[str, ...]
    advice: str
    max_time_s: float
    max_time_after_s: float
    remedy: Situation

    def as_json(self) -> dict[str, object]:
        """Return it as plain values."""
        return {
            "cause": self.cause,
            "at": list(self.at),
            "evidence": list(self.evidence),
            "advice": self.advice,
            "max_time_s": self.max_time_s,
            "max_time_after_s": self.max_time_after_s,
        }


def make_finding(
    cause: str, before: Situation, after: Situation, at: list[str], evidence: list[str], advice: str
) -> LoadCause:
    """Make a finding whose remedy turns one situation into another."""
    return LoadCause(cause, tuple(at), tuple(evidence), advice, before.max_seconds, after.max_seconds, after)


def name_node(fabric: Fabric, node: int) -> str:
    """Name a node in a sentence."""
    return printable(fabric.node_name[node]) or f"0x{int(fabric.node_guid[node]):016x}"


def name_end(situation: Situation, end: LinkDirection) -> str:
    """Name a link direction: who sends, from which port, to whom."""
    fabric = situation.subnets[end.rail].fabric
    node, port = fabric.link_node[end.link], fabric.link_port[end.link]
    sender, receiver = name_node(fabric, int(node[end.end])), name_node(fabric, int(node[1 - end.end]))
    return f"{sender} port {int(port[end.end])} to {receiver}"


def list_some(names: list[str], limit: int = 4) -> str:
    """List names in a sentence."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
