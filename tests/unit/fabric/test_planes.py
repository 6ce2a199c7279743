# SPDX-License-Identifier: Apache-2.0
"""ibprof reads the four planes of XDR in one list as rails. An adapter spreads its traffic over all planes."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ibprof_converter
from ibprof_converter.analysis.pipeline_options import FabricOptions
from ibprof_converter.analysis.pipeline_stages import read_routed_fabric
from ibprof_converter.cli import layout, report
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.link_formats import count_planes
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.traffic.rank_placement import place_ranks_as_recorded
from ibprof_lab.topology.outputs.inferred_fabric import write_fdbs, write_lst
from ibprof_testing.paths import DATA
from ibprof_testing.samples.profiles import make_host, make_port, make_profile, make_rank

ONE_LID = DATA / "cases" / "xdr-one-lid.txt"
"""24 switches in four planes of 6, 256 links, and 8 hosts with four adapters. An adapter has a port on each plane."""

PLANES, ADAPTERS = 4, 32


def four_lids(folder: Path) -> Path:
    """Write the list `ONE_LID`, but with a LID for each port of an adapter."""
    text = re.sub(
        r"^(\[(\d+)\]\(\w+\) .*# lid )(\d+)( lmc)",
        lambda match: f"{match[1]}{int(match[3]) + int(match[2]) - 1}{match[4]}",
        ONE_LID.read_text(),
        flags=re.MULTILINE,
    )
    text = re.sub(
        r'^(\[\d+\]\t"H-\w+"\[(\d)\].* lid )(\d+)( )',
        lambda match: f"{match[1]}{int(match[3]) + int(match[2]) - 1}{match[4]}",
        text,
        flags=re.MULTILINE,
    )
    path = folder / "four.txt"
    path.write_text(text)
    return path


def net_dump(folder: Path, guid_step: int) -> Path:
    """Write the fabric of `ONE_LID` as ibdiagnet's .net_dump. GUIDs of an adapter's ports differ by `guid_step`."""
    text, lines, name, guid, lid = ONE_LID.read_text(), [], "", "", ""
    for line in text.splitlines():
        if match := re.match(r'Switch\t\d+ "S-(\w+)"\t+# "([^"]+)" .* lid (\d+) ', line):
            guid, name, lid = match[1], match[2], match[3]
            lines += ["", f'"{name}", Mellanox, 0x{guid}, LID {lid}']
            lines.append("# : IB# : Sta : PhysSta : MTU : LWA : LSA : Neighbor Guid : N# : NLID : Neighbor Description")
        elif match := re.match(r'\[(\d+)\]\t"([SH])-(\w+)"\[(\d+)\].*# "([^"]+)" lid (\d+) ', line):
            port, kind, peer, peer_port, peer_name, peer_lid = match.groups()
            step = guid_step * (int(peer_port) - 1) if kind == "H" else 0
            lines.append(
                f"{port} : {port} : ACT : LINK UP : 5 : 1x : 200 : 0x{int(peer, 16) + step:016x} : {peer_port} : "
                f'{peer_lid} : "{peer_name}"'
            )
        elif line.startswith("Ca"):
            break
    path = folder / f"fabric{guid_step}.net_dump"
    path.write_text("\n".join(lines) + "\n")
    return path


def chassis(folder: Path) -> Path:
    """Write the list `ONE_LID` with links inside each chassis and an aggregation node for each switch."""
    stanzas, at = ONE_LID.read_text().split("\n\n"), {}
    for number, stanza in enumerate(stanzas):
        if match := re.search(r'^Switch\t\d+ "S-(\w+)"\t+# "([^"]+)/U(\d)" .* lid (\d+) ', stanza, re.MULTILINE):
            at[match[2], int(match[3])] = number, match[1], match[4]
    for (name, plane), (number, guid, lid) in at.items():
        for port, (peer, peer_port) in enumerate(((plane % 4 + 1, 142), ((plane - 2) % 4 + 1, 141)), 141):
            _, other, other_lid = at[name, peer]
            stanzas[number] += f'\n[{port}]\t"S-{other}"[{peer_port}] \t\t# "{name}/U{peer}" lid {other_lid} 1xXDR'
        node, node_lid = f"{int(guid, 16) + 8:016x}", 200 + int(lid)
        sharp = "Mellanox Technologies Aggregation Node"
        stanzas[number] += f'\n[145]\t"H-{node}"[1]({node}) \t\t# "{sharp}" lid {node_lid} 1xXDR'
        stanzas.append(
            f'caguid=0x{node}\nCa\t1 "H-{node}"\t\t# "{sharp}"\n'
            f'[1]({node}) \t"S-{guid}"[145]\t\t# lid {node_lid} lmc 0 "{name}/U{plane}" lid {lid} 1xXDR'
        )
    path = folder / "chassis.txt"
    path.write_text("\n\n".join(stanzas) + "\n")
    return path


def sources(folder: Path) -> list[Path]:
    return [ONE_LID, four_lids(folder), net_dump(folder, 0), net_dump(folder, 1), chassis(folder)]


@pytest.mark.parametrize("number", range(5))
def test_planes_are_rails_of_the_same_adapters(tmp_path: Path, number: int) -> None:
    fabric = read_routed_fabric(FabricOptions((str(sources(tmp_path)[number]),)))
    assert len(fabric.fabrics) == PLANES
    sharp = 6 if number == 4 else 0
    for each in fabric.fabrics:
        kinds = [int((each.node_kind == kind).sum()) for kind in (NodeKind.SWITCH, NodeKind.CA)]
        assert (kinds, each.links) == ([6, ADAPTERS + sharp], 64 + sharp)
        assert np.allclose(each.link_gbps, 200, atol=2)
    assert len(fabric.hosts.name) == 8
    assert fabric.hosts.adapters.tolist() == [[4] * PLANES] * 8


@pytest.mark.parametrize("number", range(5))
def test_traffic_is_spread_over_the_planes(tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int) -> None:
    assert report.main([str(sources(tmp_path)[number]), "pattern:all-to-all:1000000", "--json"]) == 0
    found: Any = json.loads(capsys.readouterr().out)
    assert found["bytes_total"] == found["bytes_routed"] == ADAPTERS * (ADAPTERS - 1) * 1_000_000
    assert found["coverage"]["rails"] == "modelled (split)"
    assert any("4 planes that no cable joins" in note for note in found["coverage"]["notes"])
    # Each adapter sends 31 MB, a quarter of it on each plane.
    by_adapter = [spot["bytes"] for spot in found["hotspots"] if spot["link"]["kind"] == "host"]
    assert set(by_adapter) <= {31_000_000 // PLANES}


def test_a_leaf_without_uplinks_stays_on_its_plane(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, kept, near = (DATA / "cases/xdr-one-lid.txt").read_text().splitlines(), [], ""
    leaf = next(line.split('"')[1] for line in lines if line.startswith("Switch") and "LF-01" in line and "/U3" in line)
    for line in lines:
        near = line.split('"')[1] if line.startswith(("Switch", "Ca")) else near
        is_trunk = line.startswith("[") and near.startswith("S-") and '"S-' in line
        if not (is_trunk and leaf in (near, line.split('"')[1])):
            kept.append(line)
    (tmp_path / "cut.txt").write_text("\n".join(kept))
    assert report.main([str(tmp_path / "cut.txt"), "pattern:all-to-all:1000"]) == 5
    assert "rail 2 has 2 parts that no cable joins" in " ".join(capsys.readouterr().out.split())


def test_the_check_reads_all_planes(capsys: pytest.CaptureFixture[str]) -> None:
    layout.main(["--check", str(ONE_LID), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {each["name"] for each in found["findings"]} == {"no-tables"}
    assert [(each["switches"], each["adapters"], each["links"]) for each in found["rails"]] == [(6, 32, 64)] * PLANES


def test_ranks_of_a_run_send_on_all_planes_of_their_adapters() -> None:
    """The operating system shows an adapter as a single port, which has the GUID of the adapter's first port."""
    fabric = read_routed_fabric(FabricOptions((str(ONE_LID),)))
    hosts = [
        make_host(f"any{at}", make_port(25, guid)) for at, guid in enumerate((0xE09D730300000040, 0xE09D730300000140))
    ]
    run = make_profile([], [make_rank(0, 0), make_rank(1, 1)], hosts)
    placed = place_ranks_as_recorded(run, fabric.hosts, fabric.fabrics, 2)
    assert placed.lid.tolist() == [[25] * PLANES, [41] * PLANES]


def test_a_notebook_gets_four_rails() -> None:
    assert len(ibprof_converter.read_fabric(str(ONE_LID)).fabrics) == PLANES


def test_an_adapter_with_two_aggregated_ports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ports 1 to 4 are the planes of one aggregated port, and ports 5 to 8 of another. Each port has a LID."""
    text = ONE_LID.read_text()
    seconds = re.findall(r'^Ca\t4 "H-(\w+)"\t\t# "[^"]+ mlx5_[13]"\n((?:\[.*\n)+)', text, re.MULTILINE)
    assert len(seconds) == ADAPTERS // 2
    for guid, ports in seconds:
        first = f"{int(guid, 16) - 0x40:016x}"
        text = re.sub(rf"(?m)^vendid.*\n(?:.*\n){{3}}Ca\t4 \"H-{guid}\".*\n(?:\[.*\n)+\n?", "", text)
        moved = "".join(f"[{int(line[1]) + 4}{line[2:]}" for line in ports.splitlines(keepends=True))
        text = re.sub(rf'(?m)^(Ca\t)4( "H-{first}".*\n(?:\[.*\n)+)', r"\g<1>8\g<2>@MOVED@", text).replace(
            "@MOVED@", moved
        )
        for port in range(1, 5):
            text = text.replace(f'"H-{guid}"[{port}]', f'"H-{first}"[{port + 4}]')
    text = re.sub(r'(mlx5_)[13](" lid)', lambda match: f"{match[1]}0{match[2]}", text)
    path = tmp_path / "two.txt"
    path.write_text(text)
    fabric = read_routed_fabric(FabricOptions((str(path),)))
    assert len(fabric.fabrics) == PLANES
    assert [int((each.node_kind == NodeKind.CA).sum()) for each in fabric.fabrics] == [ADAPTERS // 2] * PLANES
    assert [fabric.hosts.count_by_adapters(rail) for rail in range(PLANES)] == [{2: 8}] * PLANES
    assert report.main([str(path), "pattern:all-to-all:1000000", "--json"]) == 0
    found: Any = json.loads(capsys.readouterr().out)
    assert found["bytes_total"] == found["bytes_routed"] > 0


def test_links_of_aggregated_ports_are_four_lanes(tmp_path: Path) -> None:
    stanzas = [each for each in ONE_LID.read_text().split("\n\n") if "Switch" not in each or '/U1" enhanced' in each]
    text = re.sub(r"(?m)^\[[234]\]\(.*\n?", "", "\n\n".join(stanzas)).replace("1xXDR", "4xXDR")
    path = tmp_path / "aggregated.txt"
    path.write_text(text)
    (fabric,) = read_routed_fabric(FabricOptions((str(path),))).fabrics
    assert fabric.links == 64
    assert np.allclose(fabric.link_gbps, 800, atol=8)


def test_planes_of_one_list_have_the_tables_of_their_own_switches(tmp_path: Path) -> None:
    """The subnet manager writes one list and one file of tables for all planes."""
    made = [generate("rail-optimised:5:rails=1:planes=2:radix=4@200", part, part) for part in range(2)]
    links, tables = io.StringIO(), io.StringIO()
    for each in made:
        write_lst(links, each.fabric, "synthetic")
        write_fdbs(tables, each.tables)
    (tmp_path / "a.lst").write_text(links.getvalue().replace("PHY=4x LOG=ACT SPD=50", "PHY=1x LOG=ACT SPD=200"))
    (tmp_path / "a.fdbs").write_text(tables.getvalue())
    lost = [line for line in (tmp_path / "a.lst").read_text().splitlines() if "{r1-leaf1-p2}" not in line]
    (tmp_path / "lost.lst").write_text("\n".join(lost))
    assert count_planes(tmp_path / "lost.lst") == 2
    subnets = read_routed_fabric(FabricOptions((str(tmp_path / "a.lst"),), strict=True)).subnets
    for subnet, each in zip(subnets, made, strict=True):
        assert subnet.gaps == ()
        assert np.array_equal(subnet.fabric.node_guid, each.fabric.node_guid)
        assert np.array_equal(subnet.fabric.link_port, each.fabric.link_port)
        assert np.array_equal(subnet.tables.switch_guid, each.tables.switch_guid)
        hosts = each.fabric.node_kind[each.fabric.port_node] == NodeKind.CA
        lids = each.fabric.port_lid[hosts]
        assert np.array_equal(subnet.tables.port[:, lids], each.tables.port[:, lids])
