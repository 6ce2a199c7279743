# SPDX-License-Identifier: Apache-2.0
"""From each tool's dump of a captured fabric, ibprof reads the fabric that was built."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InconsistentError
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.link_formats import read_fabric
from ibprof_converter.layout.node_levels import find_levels
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.routing.spread import Reason, SpreadLoads, spread
from ibprof_converter.routing.subnet import Subnet, infer_lmc, join_subnet
from ibprof_converter.routing.table_formats import read_tables
from ibprof_converter.routing.tables import UNREACHABLE
from ibprof_testing.samples.fabrics import (
    BY_BOTH_TOOLS,
    FABRICS,
    IBDIAGNET,
    OPENSM,
    TRACED,
    find_sample,
    host_lids,
    load_sample,
    read_sample_bytes,
    read_subnet,
)

# Numbers of switches, CAs, routers, links, and links between switches, as the simulated fabrics were generated.
BUILT = {
    "testbed44": (2, 42, 0, 57, 15),
    "quirks-small": (6, 13, 1, 23, 8),
    "quirks-init": (6, 12, 1, 21, 7),  # one CA and one link between switches are inactive
    "xgft3-512": (192, 512, 0, 1536, 1024),
    "dualrail/rail1": (66, 354, 0, 1218, 864),
    "dualrail/rail2": (66, 340, 0, 1204, 864),
    "oversub-faulty": (16, 281, 0, 414, 133),
    "xgft3-1296": (180, 1296, 0, 3888, 2592),
    "hypercube-4": (16, 48, 0, 80, 32),
    "torus2d-5x4": (20, 40, 0, 80, 40),
    "torus2d-5x4-t2qos": (20, 40, 0, 80, 40),
    "dragonfly-72": (36, 72, 0, 162, 90),
}


@pytest.mark.parametrize("lst", [IBDIAGNET, OPENSM])
@pytest.mark.parametrize("sample", BUILT)
def test_nodes_and_links_are_those_that_were_built(sample: str, lst: str) -> None:
    fabric = load_sample(sample, lst).fabric
    kinds = np.bincount(fabric.node_kind, minlength=3)
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1).sum()
    assert (kinds[NodeKind.SWITCH], kinds[NodeKind.CA], kinds[NodeKind.ROUTER], fabric.links, between) == BUILT[sample]


@pytest.mark.parametrize("sample", BY_BOTH_TOOLS)
def test_both_tools_give_the_same_fabric(sample: str) -> None:
    one, other = load_sample(sample, IBDIAGNET).fabric, load_sample(sample, OPENSM).fabric
    assert one.node_name == other.node_name
    for field in (
        "node_guid", "node_kind", "system_guid", "link_node", "link_port",
        "port_node", "port_number", "port_guid", "port_lid", "port_lmc", "lid_node",
    ):  # fmt: skip
        assert (getattr(one, field) == getattr(other, field)).all(), field


@pytest.mark.parametrize("sample", BY_BOTH_TOOLS)
def test_both_tools_give_the_same_routes(sample: str) -> None:
    one, other = load_sample(sample, IBDIAGNET), load_sample(sample, OPENSM)
    assert (one.tables.switch_guid == other.tables.switch_guid).all()
    if sample == "quirks-init":  # for quirks-init, ibdiagnet ran after links were brought up and OpenSM had ended
        lids = host_lids(one.fabric)
        assert (one.tables.port[:, lids] == other.tables.port[:, lids]).all()
    else:
        assert (one.tables.port == other.tables.port).all()


def test_rates_are_those_that_were_set() -> None:
    """Links have the planted rates 1x QDR, SDR, DDR, FDR10, FDR, EDR and HDR, or otherwise 4x QDR."""
    assert rates_of(OPENSM) == rates_of(IBDIAGNET) == {8, 16, 32, 54.55, 100, 200}


def rates_of(lst: str) -> set[float]:
    return {round(float(rate), 2) for rate in load_sample("quirks-small", lst).fabric.link_gbps}


def test_a_link_of_2x_has_its_rate_from_both_tools() -> None:
    assert 16 in load_sample("quirks-init", IBDIAGNET).fabric.link_gbps  # printed as `PHY= .. SPD=10`: 2 x 8
    assert 100 in load_sample("quirks-init", OPENSM).fabric.link_gbps  # 2x HDR


def test_speeds_that_ibdiagnet_cannot_show_are_those_of_another_list(tmp_path: Path) -> None:
    """ibdiagnet 1.5.7 prints no speed above QDR. Two other lists in the folder contain the speeds."""
    known = load_sample("oversub-faulty", IBDIAGNET).fabric
    reason = "since ibdiagnet 1.x shows none above 10 Gb/s per lane"
    assert known.warnings == (f"speeds are those of opensm-subnet.lst.xz, {reason}",)
    truth = load_sample("oversub-faulty", OPENSM).fabric
    assert np.array_equal(known.link_gbps, truth.link_gbps)
    assert known.assumed_speeds == truth.assumed_speeds == ""
    alone = tmp_path / "ibdiagnet.lst.xz"
    shutil.copy(find_sample("oversub-faulty", IBDIAGNET), alone)
    assert read_fabric(alone).warnings == (f"speeds are assumed, {reason}",)
    # A list of another subnet must not be used for speeds.
    shutil.copy(find_sample("xgft3-512", OPENSM), tmp_path)
    assert read_fabric(alone).warnings == (f"speeds are assumed, {reason}",)


def test_odd_names_are_kept() -> None:
    names = set(load_sample("quirks-small", IBDIAGNET).fabric.node_name)
    assert names >= {"q01 [rack 1] HCA-1", "q02 two  blanks", 'q04 "quoted" HCA-1', "q05 'single' a|b", "lid 6 x"}
    assert names >= {"gpu,3;x:y mlx5_0", "100% load#7", "ibrouter A", "spine(1)"}


def test_links_that_are_not_active_are_left_out_and_told() -> None:
    warnings = "\n".join(load_sample("quirks-init", IBDIAGNET).warnings)
    assert "2 links ('leaf 1' port 5 to 'spine(2)' port 1 (line 5)" in warnings
    assert "1 node ('lid 6 x'): no active link, left out" in warnings


def test_the_order_of_lines_has_no_influence(tmp_path: Path) -> None:
    for sample, lst in (("quirks-small", OPENSM), ("oversub-faulty", IBDIAGNET)):
        lines = read_sample_bytes(sample, lst).splitlines(keepends=True)
        swapped = [b" ".join(reversed(cut_ends(line))) for line in reversed(lines)]
        path = tmp_path / "shuffled.lst"
        path.write_bytes(b"".join(swapped))
        shuffled, straight = read_fabric(path), read_fabric(find_sample(sample, lst))
        assert shuffled.node_name == straight.node_name
        assert (shuffled.link_node == straight.link_node).all()
        assert (shuffled.link_port == straight.link_port).all()
        assert (shuffled.port_lid == straight.port_lid).all()
        assert (lay_out([shuffled])[0].x == lay_out([straight])[0].x).all()


def cut_ends(line: bytes) -> list[bytes]:
    """Cut a line into its two ends. In reverse order, the ends are a valid line too."""
    first, rest = line.split(b"} {", 1)
    second, tail = rest.split(b"} PHY", 1)
    return [first + b"} PHY" + tail, b"{" + second + b"}"]


def test_lmc_is_inferred_as_opensm_told_it() -> None:
    """`guid2lid` states the LMC. Without `guid2lid`, ibprof infers this LMC from the tables."""
    subnet = load_sample("quirks-small", IBDIAGNET)
    told = subnet.fabric.port_lmc
    is_switch = subnet.fabric.node_kind[subnet.fabric.port_node] == NodeKind.SWITCH
    assert set(told[is_switch]) == {0}
    assert set(told[~is_switch]) == {1}
    forgotten = replace(subnet.fabric, port_lmc=np.zeros_like(told), lmc_known=False)
    assert (infer_lmc(forgotten, subnet.tables).port_lmc == told).all()


@pytest.mark.parametrize("sample", [sample for sample in TRACED if sample != "quirks-small"])
def test_no_lmc_is_inferred_where_there_is_none(sample: str) -> None:
    subnet = load_sample(sample, OPENSM)
    assert infer_lmc(subnet.fabric, subnet.tables) is subnet.fabric


def test_a_guid2lid_of_another_day_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "a.lst").write_bytes(read_sample_bytes("quirks-small", IBDIAGNET))
    (tmp_path / "guid2lid").write_bytes(read_sample_bytes("quirks-init", "guid2lid"))
    fabric = read_fabric(tmp_path / "a.lst")
    assert not fabric.port_lmc.any()
    assert any("not used" in warning for warning in fabric.warnings)


def test_switches_that_the_dump_lacks_are_counted() -> None:
    """ibdiagnet ended with status 0, but 58 of the 180 switches had not answered in time."""
    subnet = load_sample("xgft3-1296-partial", IBDIAGNET)
    assert len(subnet.tables.switch_guid) == 122
    assert any("58 switches have no table" in warning for warning in subnet.warnings)
    loads = all_to_all(subnet)
    assert set(loads.unrouted) == {Reason.MISSING_TABLE}
    assert loads.unrouted[Reason.MISSING_TABLE] + int(loads.routed[0]) == 1296 * 1295
    # OpenSM's tables of the same capture are complete.
    full = read_subnet(find_sample("xgft3-1296-partial", IBDIAGNET), find_sample("xgft3-1296-partial", "opensm.fdbs"))
    arriving = all_to_all(full)
    assert arriving.unrouted == {}
    # No link carries more bytes with 122 tables than with all: bytes that arrive with 122 tables take the same links.
    assert (loads.bytes <= arriving.bytes).all()


def test_all_to_all_makes_the_known_number_of_traversals() -> None:
    """Routes cross 1 switch (17 hosts of the leaf), 3 switches (306 hosts of the pod) or 5 (972 other hosts)."""
    subnet = load_sample("xgft3-1296", IBDIAGNET)
    loads = all_to_all(subnet)
    traversals = int(loads.bytes[subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.SWITCH].sum())
    assert traversals == 1296 * (17 * 1 + 306 * 3 + 972 * 5) == 7_510_320
    assert loads.routed.tolist() == [1296 * 1295]
    assert loads.unrouted == {}


def all_to_all(subnet: Subnet) -> SpreadLoads:
    lids = host_lids(subnet.fabric)
    source, destination = np.repeat(lids, len(lids)), np.tile(lids, len(lids))
    apart = source != destination
    ones = np.ones(apart.sum(), np.uint64)
    return spread(subnet.routes, source[apart], destination[apart], ones, ones * 0, 1)


LEVELS = {
    "testbed44": [42, 2],
    "quirks-small": [14, 4, 2],
    "xgft3-512": [512, 64, 64, 64],
    "dualrail/rail1": [354, 24, 24, 18],
    "oversub-faulty": [281, 12, 4],
    "xgft3-1296": [1296, 72, 72, 36],
}


@pytest.mark.parametrize("sample", LEVELS)
def test_levels_are_those_of_the_tree(sample: str) -> None:
    assert np.bincount(find_levels(load_sample(sample, IBDIAGNET).fabric)).tolist() == LEVELS[sample]


def test_the_second_rail_is_the_mirror_of_the_first() -> None:
    rails = [load_sample(f"dualrail/rail{rail}", IBDIAGNET).fabric for rail in (1, 2)]
    first, second = lay_out(rails)
    assert (first.y == first.level).all()
    assert (second.y == -second.level).all()
    assert not np.signbit(second.y[second.level == 0]).any()
    places = [
        {
            name.split()[0]: x
            for name, x, level in zip(fabric.node_name, layout.x, layout.level, strict=True)
            if level == 0
        }
        for fabric, layout in zip(rails, (first, second), strict=True)
    ]
    shared = places[0].keys() & places[1].keys()
    assert len(shared) == 338  # 336 compute hosts, 2 of management
    assert all(places[0][name] == places[1][name] for name in shared)
    assert len(set(second.x[second.level == 0])) == 340  # no two hosts have the same position


def test_hosts_are_under_their_leaves() -> None:
    fabric = load_sample("xgft3-1296", IBDIAGNET).fabric
    layout = lay_out([fabric])[0]
    assert sorted(layout.x[layout.level == 0]) == list(range(1296))
    for a, b in fabric.link_node[(layout.level[fabric.link_node] <= 1).all(axis=1)]:
        assert abs(layout.x[a] - layout.x[b]) < 9  # half of the leaf's 18 hosts
    # A middle switch is above its pod, whose leaves have a quarter of the width.
    for a, b in fabric.link_node[(np.sort(layout.level[fabric.link_node], axis=1) == [1, 2]).all(axis=1)]:
        assert int(layout.x[a] + 0.5) // 324 == int(layout.x[b] + 0.5) // 324


def test_tables_of_another_fabric_are_refused() -> None:
    with pytest.raises(InconsistentError, match="two fabrics"):
        join_subnet(load_sample("testbed44", OPENSM).fabric, load_sample("quirks-small", OPENSM).tables)


def test_packed_and_plain_files_are_read_alike(tmp_path: Path) -> None:
    for name in (IBDIAGNET, "ibdiagnet.fdbs"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(read_sample_bytes("testbed44", name)))
    packed = read_subnet(tmp_path / f"{IBDIAGNET}.gz")
    assert (packed.fabric.link_node == load_sample("testbed44", IBDIAGNET).fabric.link_node).all()
    assert (packed.tables.port == load_sample("testbed44", IBDIAGNET).tables.port).all()


def test_tables_of_different_length_are_filled_up() -> None:
    """Each entry of the tables equals the result of a simple line-by-line reader."""
    for sample, name in (("quirks-small", "ibdiagnet.fdbs"), ("oversub-faulty", "opensm.fdbs")):
        tables = read_tables(find_sample(sample, name))
        expected: dict[tuple[int, int], int] = {}
        guid = 0
        for line in read_sample_bytes(sample, name).decode().splitlines():
            if "Switch" in line:
                guid = int(line.split()[-1], 16)
            elif line.startswith("0x") and "UNREACHABLE" not in line:
                lid, port = line.split(" : ")[:2]
                expected[guid, int(lid, 16)] = int(port)
        rows, lids = np.nonzero(tables.port != UNREACHABLE)
        found = {
            (int(tables.switch_guid[row]), int(lid)): int(tables.port[row, lid])
            for row, lid in zip(rows, lids, strict=True)
        }
        assert found == expected


def test_every_sample_names_its_source() -> None:
    folders = {path.parent for path in FABRICS.rglob("*.fdbs*")}
    assert len(folders) == 14
    assert all("ibsim 0.10" in (folder / "README.md").read_text() for folder in folders)
