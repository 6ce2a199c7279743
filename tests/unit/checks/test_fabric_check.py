# SPDX-License-Identifier: Apache-2.0
"""The check finds and prints each planted defect of a captured fabric, and no defects in faultless fabrics."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibprof_converter.checks.cabling_check import check_cabling
from ibprof_converter.checks.fabric_check import (
    FabricHealth,
    RailSummary,
    check_fabric_files,
    check_rails_alike,
    describe_health,
)
from ibprof_converter.checks.fabric_findings import FabricFinding, FindingKind
from ibprof_converter.cli import layout
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.node_levels import find_leaves, find_levels
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.synthetic.build import SyntheticPlan, build
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_testing.samples.fabrics import (
    IBDIAGNET,
    IBNETDISCOVER,
    OPENSM,
    find_sample,
    load_sample,
    read_sample_bytes,
    read_subnet,
)

INNOCENT = (
    "testbed44", "hypercube-4", "torus2d-5x4", "torus2d-5x4-t2qos", "dragonfly-72", "xgft3-512", "xgft3-1296",
    "dualrail/rail1", "dualrail/rail2",
)  # fmt: skip


def check(*paths: Path) -> FabricHealth:
    return check_fabric_files(find_rails(paths))


def names(health: FabricHealth) -> list[str]:
    return [finding.kind.value.name for finding in health.findings]


@pytest.mark.parametrize("lst", [IBDIAGNET, OPENSM, IBNETDISCOVER])
@pytest.mark.parametrize("sample", INNOCENT)
def test_nothing_is_found_where_nothing_is_wrong(sample: str, lst: str) -> None:
    health = check(find_sample(sample, lst))
    # The tables of dump_fts lack LID 64, which is a host's LID in ibnetdiscover's list of links.
    forgotten = ["unreachable-lid"] if (sample, lst) == ("hypercube-4", IBNETDISCOVER) else []
    assert names(health) == forgotten
    assert health.trusted == (not forgotten)


def test_switches_without_tables_are_found() -> None:
    health = check(find_sample("xgft3-1296-partial", IBDIAGNET))
    assert names(health) == ["switch-without-table"]
    assert "58 of 180 switches" in health.findings[0].what
    assert len(health.findings[0].places) == 58
    assert not health.trusted


def test_links_and_leaves_unlike_their_peers_are_found() -> None:
    """According to the sample's README, 11 links between switches were removed, and 6 links have another rate."""
    health = check(find_sample("oversub-faulty", OPENSM))
    found = {finding.kind.value.name: finding for finding in health.findings}
    assert set(found) == {"slow-link", "narrow-link", "uneven-uplinks", "missing-cable"}
    assert len(found["slow-link"].places) + len(found["narrow-link"].places) == 6
    missing = [12 - int(place.rsplit(" ", 1)[1]) for place in found["uneven-uplinks"].places]
    assert sum(missing) == 11
    assert len(found["missing-cable"].places) == 11
    assert health.trusted


@pytest.mark.parametrize(
    ("losing", "kind", "what"),
    [
        (4, "few-uplinks", "4 of 9 leaf switches with fewer uplinks than the usual 6"),
        (6, "uneven-uplinks", "9 leaf switches have different numbers of uplinks: 6 with 5, 3 with 6"),
    ],
)
def test_uplinks_that_leaves_lack_are_found(losing: int, kind: str, what: str) -> None:
    """`losing` leaves of nine each lost a link to another spine. If most leaves lost a link, no leaf is named."""
    full = read_subnet("xgft:2:4,9:1,6").fabric
    is_uplink = (full.node_kind[full.link_node] == NodeKind.SWITCH).all(axis=1)
    leaves = find_leaves(full)
    assert len(leaves) == 9
    lost = [
        np.flatnonzero(is_uplink & (full.link_node == leaf).any(axis=1))[at] for at, leaf in enumerate(leaves[:losing])
    ]
    found, *cables = check_cabling(0, without_links(full, np.array(lost)))
    assert (found.kind.value.name, found.what) == (kind, what)
    # The lost links lead to different spines. If more than a tenth of all links is lost, no regular fabric fits.
    assert [each.kind.value.name for each in cables] == ["missing-cable"] * (losing < 6)
    for each in cables:
        assert set(each.places) == {name_ends(full, link) for link in lost}


def test_uplinks_that_switches_above_the_leaves_lack_are_found() -> None:
    full = read_subnet("xgft:3:4,4,4:1,4,4").fabric
    level = find_levels(full)
    lost = np.flatnonzero((np.sort(level[full.link_node], axis=1) == (2, 3)).all(axis=1))[[0, 20]]
    found, cables = check_cabling(0, without_links(full, lost))
    assert found.kind.value.name == "few-uplinks"
    assert found.what == "2 of 16 switches of level 2 with fewer uplinks than the usual 4"
    assert cables.kind.value.name == "missing-cable"
    assert set(cables.places) == {name_ends(full, link) for link in lost.tolist()}
    assert not list(check_cabling(0, full))


def name_ends(fabric: Fabric, link: int) -> str:
    """Return the names of a link's two ends, the lower end first."""
    level = find_levels(fabric)
    low, high = sorted(fabric.link_node[link].tolist(), key=lambda node: int(level[node]))
    return f"{fabric.node_name[low]!r} to {fabric.node_name[high]!r}"


def without_links(fabric: Fabric, lost: np.ndarray) -> Fabric:
    kept = np.setdiff1d(np.arange(fabric.links), lost)
    return replace(
        fabric,
        link_node=fabric.link_node[kept],
        link_port=fabric.link_port[kept],
        link_gbps=fabric.link_gbps[kept],
        link_lanes=fabric.link_lanes[kept],
        link_half=fabric.link_half[kept],
    )


def test_links_that_are_not_active_are_found() -> None:
    health = check(find_sample("quirks-init", IBDIAGNET))
    inactive = next(finding for finding in health.findings if finding.kind.value.name == "inactive-link")
    assert len(inactive.places) == 2


def test_hosts_that_a_rail_lacks_are_found() -> None:
    health = check(*(find_sample(f"dualrail/rail{rail}", OPENSM) for rail in (1, 2)))
    assert names(health) == ["host-missing-on-rail", "host-missing-on-rail", "rails-differ"]
    assert health.findings[0].places == ("gridgw01", "gridgw02")
    assert any(host.startswith("oss") for host in health.findings[1].places)
    assert health.trusted


Edit = Callable[[str], str]


def plant(folder: Path, sample: str, lst: Edit = str, fdbs: Edit = str, tool: str = "opensm") -> FabricHealth:
    links, tables = {"opensm": (OPENSM, "opensm.fdbs"), "ibdiagnet": (IBDIAGNET, "ibdiagnet.fdbs")}[tool]
    for name, edit in ((links, lst), (tables, fdbs)):
        (folder / name).write_text(edit(read_sample_bytes(sample, name).decode()))
    return check(folder / links)


def test_a_half_link_is_found(tmp_path: Path) -> None:
    health = plant(tmp_path, "testbed44", lst=lambda text: text[: text.rstrip().rindex("\n") + 1])
    assert names(health) == ["half-link"]
    assert not health.trusted


def test_a_lid_of_two_ports_is_found(tmp_path: Path) -> None:
    health = plant(tmp_path, "testbed44", lst=lambda text: text.replace("LID:0003", "LID:0004"))
    assert names(health) == ["lid-twice"]
    assert re.search(r"LID 0x0004 .*'host\d+ HCA-1' port 1, 'host\d+ HCA-1' port 1", health.findings[0].what)
    assert not health.trusted


def test_a_missing_link_leaves_routes_without_one(tmp_path: Path) -> None:
    health = plant(
        tmp_path,
        "testbed44",
        lst=lambda text: re.sub(r"\{ SW [^\n]*? PN:16 \} \{ SW [^\n]*\n", "", text),
        tool="ibdiagnet",
    )
    assert names(health)[0] == "route-without-link"
    assert "'sw-a' port 22" in health.findings[0].places


def test_an_unreachable_lid_is_found(tmp_path: Path) -> None:
    health = plant(tmp_path, "testbed44", fdbs=lambda text: re.sub(r"0x0006 : \d+ .*", "0x0006 : UNREACHABLE", text))
    assert names(health) == ["unreachable-lid"]
    assert health.findings[0].what == "2 routes to 1 of 42 LIDs end at a switch that has no entry for them"


def test_a_loop_is_found(tmp_path: Path) -> None:
    """Two switches send packets for LID 6 to each other. The link between them is at port 22 of each switch."""
    health = plant(tmp_path, "testbed44", fdbs=lambda text: re.sub(r"0x0006 : \d+ ", "0x0006 : 022 ", text))
    assert names(health) == ["loop"]
    assert "2 routes to 1 of 42 LIDs" in health.findings[0].what


def test_a_route_to_another_port_is_found(tmp_path: Path) -> None:
    fabric = load_sample("testbed44", OPENSM).fabric
    port_of = {  # LID -> GUID of the host's switch, and the switch's port to the host
        int(fabric.port_lid[index]): (int(fabric.node_guid[fabric.link_node[link, 0]]), int(fabric.link_port[link, 0]))
        for link in range(fabric.links)
        for index in np.flatnonzero(fabric.port_node == fabric.link_node[link, 1])
        if fabric.node_kind[fabric.link_node[link, 1]] == NodeKind.CA
    }
    guid, port = port_of[6]
    other = next(number for of, number in port_of.values() if of == guid and number != port)

    def misdirect(text: str) -> str:
        head, body = text.split(f"Switch {guid:#018x}\n", 1)
        return f"{head}Switch {guid:#018x}\n" + body.replace(f"0x0006 : {port:03}", f"0x0006 : {other:03}", 1)

    health = plant(tmp_path, "testbed44", fdbs=misdirect)
    assert names(health) == ["wrong-end"]


def test_links_without_any_tables_are_looked_at_all_the_same(tmp_path: Path) -> None:
    (tmp_path / OPENSM).write_bytes(read_sample_bytes("oversub-faulty", OPENSM))
    health = check(tmp_path / OPENSM)
    assert names(health) == ["no-tables", "slow-link", "narrow-link", "uneven-uplinks", "missing-cable"]
    assert health.findings[0].what == "no forwarding tables of 16 switches"
    assert "dump_fts" in health.findings[0].kind.value.text
    assert not health.trusted


def test_assumed_rates_are_compared_with_none(tmp_path: Path) -> None:
    """A list without rates gives leaves of two sizes different assumed rates of uplinks: this is no finding."""
    leaves = "".join(f"SwitchName=l{n} Nodes=n{n}[01-{16 if n else 4:02}]\n" for n in range(4))
    (tmp_path / "topology.conf").write_text(leaves + "SwitchName=top Switches=l[0-3]\n")
    health = check(tmp_path / "topology.conf")
    assert names(health) == ["modelled-routes"]
    assert "as a scheduler's topology has none" in health.findings[0].what
    assert not health.trusted


def test_links_of_unknown_rate_are_found(tmp_path: Path) -> None:
    health = plant(tmp_path, "testbed44", lst=lambda text: text.replace("SPD=10", "SPD=7", 1))
    assert names(health) == ["unknown-rate"]
    assert health.findings[0].places[0].endswith("(4x, unknown speed)")
    assert health.trusted


def test_a_cut_list_of_links_is_found(tmp_path: Path) -> None:
    health = plant(tmp_path, "testbed44", lst=lambda text: re.sub(r".*\{host05 .*\n", "", text))
    assert names(health) == ["unlisted-lid", "route-without-link"]


def test_a_rail_that_is_smaller_is_found(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    plant(tmp_path / "x", "dualrail/rail2", lst=lambda text: re.sub(r".*rail2-core2/S9\b.*\n", "", text))
    health = check(find_sample("dualrail/rail1", OPENSM), tmp_path / "x")
    differing = [finding.what for finding in health.findings if finding.kind.value.name == "rails-differ"]
    assert any("numbers of switches: 66, 65" in what for what in differing)


def test_the_command_lists_findings_and_ends_with_status_5(capsys: pytest.CaptureFixture[str]) -> None:
    partial, whole = (str(find_sample(name, IBDIAGNET)) for name in ("xgft3-1296-partial", "testbed44"))
    assert layout.main(["--check", partial]) == 5
    printed = capsys.readouterr()
    assert "switch-without-table: 58 of 180" in printed.out
    assert printed.err == "ibprof-layout: routes cannot be trusted\n"
    assert layout.main(["--check", whole, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["routes_trusted"] is True
    assert document["findings"] == []
    assert document["rails"][0]["switches"] == 2
    assert layout.main(["--check", whole, "--png", "x.png"]) == 2
    assert layout.main([whole, "pattern:shift:1", "--json"]) == 2


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
        "rail 0: b.lst: 1 switch, 1 adapter, 3 routers, 1 link; 1 table from b.fdbs; switches route adaptively: "
        "the tables show only one of several paths"
    )
    assert second == "rail 1: c.lst: cannot be used"


def test_findings_that_make_routes_unreliable_are_marked() -> None:
    findings = (
        FabricFinding(FindingKind.LOOP, 1, "1 LID", ("7",)),
        FabricFinding(FindingKind.SLOW_LINK, 0, "2 links", ("x", "y")),
    )
    lines = list(describe_health(FabricHealth((RAIL, RAIL), findings)))[2:]
    assert lines[:2] == ["", "rail 1: loop: 1 LID: 7"]
    assert lines[2].startswith("    ROUTES CANNOT BE TRUSTED: packets to these LIDs run in a loop: ")
    assert lines[3:5] == ["", "rail 0: slow-link: 2 links: x, y"]
    assert "CANNOT BE TRUSTED" not in "".join(lines[3:])
    assert all(line.startswith("    ") and len(line) <= 120 for line in lines[5:])


def test_hosts_with_several_adapters_are_counted() -> None:
    many = RailSummary("a.lst", "a.fdbs", hosts_by_adapters={8: 140, 1: 1})
    lines = list(describe_health(FabricHealth((many, RAIL), ())))
    assert lines[1] == "rail 0: 140 hosts with 8 adapters, 1 host with 1 adapter in one subnet"
    assert lines[2].startswith("rail 1: a.lst")


def test_a_spine_with_half_the_links_of_its_peers_is_found() -> None:
    full = generate("xgft:2:4,4:1,3:1,2").fabric
    spine = int(np.flatnonzero(find_levels(full) == 2)[0])
    pairs = [tuple(sorted(pair)) for pair in full.link_node.tolist()]
    lost = [link for link, pair in enumerate(pairs) if spine in pair and pair in pairs[:link]]
    assert len(lost) == 4
    (found,) = check_cabling(0, without_links(full, np.array(lost)))
    assert found.kind.value.name == "few-links"
    assert found.places == (f"{full.node_name[spine]!r} has 4",)
    assert not list(check_cabling(0, full))


@pytest.mark.parametrize(
    ("level", "lost", "skipped"),
    [(2, 1, "4, 8"), (2, 2, "5, 9"), (1, 1, "2, 6"), (1, 2, "3, 7"), (2, 0, ""), (2, 3, "")],
)
def test_a_switch_that_is_off_leaves_a_gap_in_the_ports_of_all_its_neighbours(
    level: int, lost: int, skipped: str
) -> None:
    """A leaf has two cables to each of four spines, at ports 3 to 10. A spine's ports 1 to 8 lead to leaves."""
    full = generate("xgft:2:2,4:1,4:1,2").fabric
    alike = np.flatnonzero((full.node_kind == NodeKind.SWITCH) & (find_levels(full) == level)).tolist()
    off = (full.link_node == alike[lost]).any(axis=1)
    found = list(check_cabling(0, without_links(full, np.flatnonzero(off))))
    places = [place for each in found if each.kind is FindingKind.SKIPPED_PORTS for place in each.places]
    assert [place.partition(" and 3 more")[0].split(" of ")[0] for place in places] == (
        [f"ports {skipped}"] if skipped else []
    )
    assert all("and 3 more switches, between ports to" in place for place in places)


def build_fabric(leaf: Sequence[int], cables: Sequence[tuple[int, int]]) -> Fabric:
    """Return a fabric. leaf: switch of each host. cables: the two switches of each cable."""
    used = [0] * (1 + max(map(max, cables)))

    def plug(switch: int) -> int:
        used[switch] += 1
        return used[switch]

    plan = SyntheticPlan(
        name="made",
        switch_name=[f"s{number}" for number in range(len(used))],
        host_switch=np.array(leaf),
        host_port=np.array([plug(each) for each in leaf]),
        cable=np.array([(one, plug(one), other, plug(other)) for one, other in cables]),
        egress=np.zeros((len(used), len(leaf)), np.uint8),
    )
    return build(plan, 100.0, 0).fabric


def test_top_switches_that_differ_by_design_are_no_finding() -> None:
    # Dragonfly+: four groups of two leaves and four spines. A cable joins each pair of groups. A group's last spine has
    # no cable to another group.
    leaf = [6 * group + each for group in range(4) for each in (0, 1) for _ in range(4)]
    inside = [(6 * group + each, 6 * group + 2 + top) for group in range(4) for each in (0, 1) for top in range(4)]
    ends = [((0, 0), (1, 0)), ((0, 1), (2, 0)), ((0, 2), (3, 0)), ((1, 1), (2, 1)), ((1, 2), (3, 1)), ((2, 2), (3, 2))]
    across = [(6 * one + 2 + top, 6 * two + 2 + other) for (one, top), (two, other) in ends]
    assert not list(check_cabling(0, build_fabric(leaf, [*inside, *across])))
    # One spine has fewer ports than the others.
    full = generate("xgft:2:4,4:1,3:1,2").fabric
    top = int(np.flatnonzero(find_levels(full) == 2)[0])
    pairs = [tuple(sorted(pair)) for pair in full.link_node.tolist()]
    lost = [link for link, pair in enumerate(pairs) if top in pair and pair in pairs[:link]]
    ports = np.where(np.arange(full.nodes) == top, 20, 40).astype(np.uint8)
    assert not list(check_cabling(0, replace(without_links(full, np.array(lost)), node_ports=ports)))
    # Two separate trees in one list: three switches join eight leaves, one switch joins two leaves.
    cables = [(each, 8 + top) for each in range(8) for top in range(3)] + [(each, 13) for each in (11, 12) * 3]
    two = build_fabric([*range(8), *range(8), 11, 12], cables)
    assert [each.kind.value.name for each in check_cabling(0, two)] == ["separate-parts"]


def name_adapters(device: str, changed: Mapping[str, str]) -> Fabric:
    made = generate("xgft:2:4,4:1,2").fabric
    named = {**{each: each.replace("HCA-1", device) for each in made.node_name}, **changed}
    return replace(made, node_name=tuple(named[each] for each in made.node_name))


def compare_rails(*rails: Fabric) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.kind.value.name, each.places) for each in check_rails_alike(rails, find_hosts(rails))]


def test_hosts_with_fewer_or_swapped_adapters_are_found() -> None:
    assert not compare_rails(name_adapters("mlx5_0", {}), name_adapters("mlx5_1", {}))
    swapped = (
        name_adapters("mlx5_0", {"host03 HCA-1": "host03 mlx5_1"}),
        name_adapters("mlx5_1", {"host03 HCA-1": "host03 mlx5_0"}),
    )
    assert compare_rails(*swapped) == [("rails-swapped", ("host03",))]
    two = name_adapters("mlx5_0", {"host04 HCA-1": "host03 mlx5_1"})
    assert ("host-missing-on-rail", ("host03 has 1 of 2",)) in compare_rails(two, two, name_adapters("mlx5_0", {}))
    blank = compare_rails(name_adapters("mlx5_0", {"host03 HCA-1": " "}), name_adapters("mlx5_1", {}))
    assert {kind for kind, _ in blank} == {"host-missing-on-rail"}


def test_hosts_of_several_kinds_are_no_finding() -> None:
    """Other adapter names, or two adapters on a rail, are not findings. A missing adapter on a rail is a finding."""
    others = [f"host{number:02} HCA-1" for number in range(1, 6)]
    kinds = [
        name_adapters(device, {each: each.replace("HCA-1", on) for each in others[:3]})
        for device, on in (("mlx5_0", "mlx5_1"), ("mlx5_1", "mlx5_0"), ("mlx5_2", "mlx5_8"))
    ]
    assert not compare_rails(*kinds)
    second = {f"host{number:02} HCA-1": f"host{number - 4:02} mlx5_8" for number in range(5, 9)}
    found = compare_rails(name_adapters("mlx5_0", second), name_adapters("mlx5_1", {}))
    assert [places[0] for _, places in found] == ["host05", "rail 0"]


def test_parts_that_a_router_joins_are_called_so() -> None:
    made = generate("xgft:2:2,2:1,1").fabric
    kind = made.node_kind.copy()
    kind[made.node_name.index("L2-1")] = NodeKind.ROUTER
    separate = next(iter(check_cabling(0, replace(made, node_kind=kind))))
    assert separate.what == "2 parts that only router L2-1 joins"
    assert separate.places == ("L1-1 with 2 adapters", "L1-2 with 2 adapters")
