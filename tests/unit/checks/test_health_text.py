# SPDX-License-Identifier: Apache-2.0
"""The health of a fabric in lines: each rail, each finding with its places, and what it means."""

from __future__ import annotations

from ibprof_converter.checks.fabric_check import FabricHealth, RailSummary, describe_health
from ibprof_converter.checks.fabric_findings import FabricFinding, FindingKind

RAIL = RailSummary("a.lst", "a.fdbs", switches=2, adapters=44, links=45, tables=2)


def test_a_fabric_without_findings_is_said_to_be_so() -> None:
    assert list(describe_health(FabricHealth((RAIL,), ()))) == [
        "rail 0: a.lst: 2 switches, 44 adapters, 45 links; 2 tables from a.fdbs",
        "nothing is wrong",
    ]


def test_routers_adaptive_routing_and_unusable_rails_are_named() -> None:
    other = RailSummary("b.lst", "b.fdbs", switches=1, adapters=1, routers=3, links=1, tables=1, adaptive=True)
    first, second, *_ = describe_health(FabricHealth((other, RailSummary("c.lst", None)), ()))
    assert first == (
        "rail 0: b.lst: 1 switches, 1 adapters, 3 routers, 1 links; 1 tables from b.fdbs; switches route adaptively: "
        "the tables give one of the paths"
    )
    assert second == "rail 1: c.lst: cannot be used"


def test_findings_that_make_routes_unreliable_are_marked() -> None:
    findings = (
        FabricFinding(FindingKind.LOOP, 1, "1 LID", ("7",)),
        FabricFinding(FindingKind.SLOW_LINK, 0, "2 links", ("x", "y")),
    )
    lines = list(describe_health(FabricHealth((RAIL, RAIL), findings)))[2:]
    assert lines[:2] == ["", "rail 1: loop: 1 LID: 7"]
    assert lines[2].startswith("    ROUTES CANNOT BE TRUSTED: packets to these LIDs go round without end: ")
    assert lines[3:5] == ["", "rail 0: slow-link: 2 links: x, y"]
    assert "CANNOT BE TRUSTED" not in "".join(lines[3:])
    assert all(line.startswith("    ") and len(line) <= 120 for line in lines[5:])


def test_hosts_with_several_adapters_are_counted() -> None:
    many = RailSummary("a.lst", "a.fdbs", hosts_by_adapters={8: 140, 1: 1})
    lines = list(describe_health(FabricHealth((many, RAIL), ())))
    assert lines[1] == "rail 0: 140 hosts with 8 adapters, 1 host with 1 adapter in one subnet"
    assert lines[2].startswith("rail 1: a.lst")
