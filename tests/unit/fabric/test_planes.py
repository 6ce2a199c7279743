# SPDX-License-Identifier: Apache-2.0
"""XDR's four planes in one list: adapters with four ports, the planes as rails, traffic spread evenly over them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ibprof_converter
from ibprof_converter.analysis.load_options import FabricOptions
from ibprof_converter.analysis.load_pipeline import read_routed_fabric
from ibprof_converter.cli import layout, report
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.traffic.rank_placement import place_ranks_as_recorded
from ibprof_testing.paths import DATA
from ibprof_testing.samples.profiles import make_host, make_port, make_profile, make_rank

ONE_LID = DATA / "cases" / "xdr-one-lid.txt"
"""24 switches in four planes of 6; 8 hosts with four adapters, each with a port on every plane; 256 links."""

PLANES, ADAPTERS = 4, 32


def four_lids(folder: Path) -> Path:
    """Return the same list where each port of an adapter has a LID of its own."""
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
    """Return the same fabric as ibdiagnet's .net_dump; the GUIDs of an adapter's ports differ by `guid_step`."""
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


def sources(folder: Path) -> list[Path]:
    return [ONE_LID, four_lids(folder), net_dump(folder, 0), net_dump(folder, 1)]


@pytest.mark.parametrize("number", range(4))
def test_planes_are_rails_of_the_same_adapters(tmp_path: Path, number: int) -> None:
    fabric = read_routed_fabric(FabricOptions((str(sources(tmp_path)[number]),)))
    assert len(fabric.fabrics) == PLANES
    for each in fabric.fabrics:
        kinds = [int((each.node_kind == kind).sum()) for kind in (NodeKind.SWITCH, NodeKind.CA)]
        assert (kinds, each.links) == ([6, ADAPTERS], 64)
        assert np.allclose(each.link_gbps, 200, atol=2)
    assert len(fabric.hosts.name) == 8
    assert fabric.hosts.adapters.tolist() == [[4] * PLANES] * 8


@pytest.mark.parametrize("number", range(4))
def test_traffic_is_spread_over_the_planes(tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int) -> None:
    assert report.main([str(sources(tmp_path)[number]), "pattern:all-to-all:1000000", "--json"]) == 0
    found: Any = json.loads(capsys.readouterr().out)
    assert found["bytes_total"] == found["bytes_routed"] == ADAPTERS * (ADAPTERS - 1) * 1_000_000
    assert found["coverage"]["rails"] == "modelled (split)"
    assert any("4 planes that no cable joins" in note for note in found["coverage"]["notes"])
    # Each adapter sends 31 MB, a quarter of them on each plane.
    by_adapter = [spot["bytes"] for spot in found["hotspots"] if spot["link"]["kind"] == "host"]
    assert set(by_adapter) <= {31_000_000 // PLANES}


def test_the_check_reads_all_planes(capsys: pytest.CaptureFixture[str]) -> None:
    layout.main(["--check", str(ONE_LID), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {each["name"] for each in found["findings"]} == {"no-tables"}
    assert [(each["switches"], each["adapters"], each["links"]) for each in found["rails"]] == [(6, 32, 64)] * PLANES


def test_ranks_of_a_run_send_on_all_planes_of_their_adapters() -> None:
    """A host sees an adapter as one port, with the GUID of its first."""
    fabric = read_routed_fabric(FabricOptions((str(ONE_LID),)))
    hosts = [
        make_host(f"any{at}", make_port(25, guid)) for at, guid in enumerate((0xE09D730300000040, 0xE09D730300000140))
    ]
    run = make_profile([], [make_rank(0, 0), make_rank(1, 1)], hosts)
    placed = place_ranks_as_recorded(run, fabric.hosts, fabric.fabrics, 2)
    assert placed.lid.tolist() == [[25] * PLANES, [41] * PLANES]


def test_a_notebook_gets_four_rails() -> None:
    assert len(ibprof_converter.read_fabric(str(ONE_LID)).fabrics) == PLANES
