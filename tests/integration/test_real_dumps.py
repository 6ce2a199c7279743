# SPDX-License-Identifier: Apache-2.0
"""Dumps with the peculiarities of real sites: synthetic dumps, and genuine dumps that are not part of the project.

`IBPROF_REAL_DUMPS=DIR` names a folder with the subfolders `avakas`, `plafrim`, `superpod`, `cs8500`, `installing`,
`director`, `x5` and `far/made`, as docs/formats/fabrics.md lists them.
"""

from __future__ import annotations

import lzma
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.layout.node_levels import find_levels
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.route_choice import read_routed_rail
from ibprof_converter.routing.spread import spread_matrix
from ibprof_converter.routing.subnet import Subnet, read_rail, read_without_tables
from ibprof_testing.lab.far import FarForm, write_far
from ibprof_testing.samples.fabrics import DUMP_FTS, OPENSM, PORT_LIST, host_lids, load_sample, read_sample_bytes

SAMPLE = "oversub-faulty"

REAL = os.environ.get("IBPROF_REAL_DUMPS")

PROGRESS = 'DR path slid 0; dlid 0; 0,1,{0} -> new Channel Adapter {{001175000077f2{0:02x}}} portnum 1 lid 0-0 ""\n'
DARK = "SW    14 36 0x0002c90200f00028 4x SDR                                    'leaf 4'\n"
TRAILER = "/usr/sbin/ibroute: iberror: failed: dump tables: linear forwarding table get failed\n"


def read_text(path: Path) -> str:
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8", "backslashreplace")


def write_site(folder: Path) -> Path:
    """Write a list of links with progress lines and unconnected ports, and a subfolder with each switch's table."""
    links = read_sample_bytes(SAMPLE, PORT_LIST).decode()
    progress = "".join(PROGRESS.format(port) for port in range(1, 200))
    (folder / "ib-subnet-fe80:0000.txt").write_text(
        progress + links + DARK.replace("0x0002c90200f00028", _switch_of(links))
    )
    below = folder / "ibroutes-fe80:0000"
    below.mkdir()
    text = read_sample_bytes(SAMPLE, DUMP_FTS).decode()
    for number, table in enumerate(filter(None, re.split(r"(?=^Unicast lids )", text, flags=re.MULTILINE))):
        body = re.sub(r"^\d+ valid lids dumped.*\n", "", table, flags=re.MULTILINE)
        (below / f"ibroute-fe80:0000-{number}.txt").write_text(body + TRAILER)
    return folder


def _switch_of(links: str) -> str:
    found = re.search(r"^SW[^x\n]*(0x[0-9a-f]{16})", links, re.MULTILINE)
    assert found is not None
    return found[1]


@dataclass(frozen=True)
class Counted:
    """Counts: pairs of hosts with a path, hops of all these paths, and paths on the busiest link between switches."""

    arriving: int
    transmit_ports: int
    busiest: int


def count_by_hand(folder: Path) -> Counted:
    """Follow the paths in the raw text files, without ibprof's readers."""
    (links,) = (path for path in folder.iterdir() if path.is_file())
    peer: dict[tuple[str, int], tuple[str, int]] = {}
    adapters: dict[int, str] = {}
    end = r"(CA|SW)\s+(\d+)\s+(\d+) (0x[0-9a-f]{16})"
    for line in read_text(links).splitlines():
        if match := re.match(rf"{end} \S+ \S+ - {end} ", line):
            kind, lid, port, guid, peer_kind, peer_lid, peer_port, peer_guid = match.groups()
            for own, other in (((guid, int(port)), (peer_guid, int(peer_port))),):
                peer[own], peer[other] = other, own
            for each, number, name in ((kind, lid, guid), (peer_kind, peer_lid, peer_guid)):
                if each == "CA":
                    adapters[int(number)] = name
    table: dict[str, dict[int, int]] = {}
    for path in next(path for path in folder.iterdir() if path.is_dir()).iterdir():
        text = read_text(path)
        switch = re.search(r"guid (0x[0-9a-f]{16})", text)
        assert switch is not None
        table[switch[1]] = {
            int(lid, 16): int(port) for lid, port in re.findall(r"^(0x[0-9a-f]{4}) (\d{3}) :", text, re.M)
        }
    first = {lid: next(at for at in peer if at[0] == guid) for lid, guid in adapters.items()}
    arriving, transmit_ports, used = 0, 0, Counter[tuple[str, int]]()
    for source in adapters:
        for target, name in adapters.items():
            if source == target:
                continue
            hops = [first[source]]
            while (here := peer[hops[-1]][0]) in table and len(hops) < 64 and target in table[here]:
                hops.append((here, table[here][target]))
            if here == name:
                arriving += 1
                transmit_ports += len(hops)
                used.update(hop for hop in hops[1:-1])
    return Counted(arriving, transmit_ports, max(used.values()))


def count_by_ibprof(subnet: Subnet) -> Counted:
    """Follow the paths in the tables that ibprof reads."""
    fabric = subnet.fabric
    lids = fabric.port_lid[fabric.node_kind[fabric.port_node] == NodeKind.CA]
    source, target = (axis.ravel() for axis in np.meshgrid(lids, lids, indexing="ij"))
    apart = source != target
    paths = subnet.routes.find_paths(source[apart], target[apart])
    loads = np.bincount(paths.end, minlength=2 * fabric.links)
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    return Counted(int((np.diff(paths.offset) > 0).sum()), len(paths.end), int(loads[np.repeat(between, 2)].max()))


KNOWN = {"avakas": Counted(78_680, 305_400, 332), "plafrim": Counted(15_500, 67_104, 2_646)}
"""Numbers that an independent reader counted in the genuine files."""


@pytest.mark.parametrize("site", ["written here", *(KNOWN if REAL else ())])
def test_routes_of_a_list_with_a_table_file_for_each_switch_are_those_of_the_raw_files(
    tmp_path: Path, site: str
) -> None:
    folder = Path(REAL or "") / site if site in KNOWN else write_site(tmp_path)
    (files,) = find_rails([folder])
    found = count_by_ibprof(read_rail(files))
    assert found == count_by_hand(folder)
    assert found == KNOWN.get(site, found)


def test_alike_messages_of_table_files_are_one_warning_with_their_number(tmp_path: Path) -> None:
    (files,) = find_rails([write_site(tmp_path)])
    tables = len(list((tmp_path / "ibroutes-fe80:0000").iterdir()))
    found = [warning for warning in read_rail(files).warnings if "linear forwarding table get failed" in warning]
    assert len(found) == 1
    assert found[0].endswith(f", and {tables - 1} more alike)")
    assert " of ibroute-fe80:0000-0.txt, " in found[0]


BUSIEST = {"avakas": ("d-mod-k", 332, 270), "plafrim": ("min-hop", 2646, 2646)}
"""Site -> (routing model, most paths on a link between switches by the site's tables, and by the model's tables)."""


@pytest.mark.parametrize("site", ["written here", *(BUSIEST if REAL else ())])
def test_modelled_routes_are_as_far_off_as_the_page_says(tmp_path: Path, site: str) -> None:
    """The tables of the synthetic site are from OpenSM's engine updn, and the model computes equal tables."""
    (files,) = find_rails([Path(REAL or "") / site if site in BUSIEST else write_site(tmp_path)])
    model, by_tables, by_model = BUSIEST.get(site, ("min-hop", 1407, 1407))
    subnets = read_rail(files), read_routed_rail(files, routes="modelled")
    assert subnets[1].route_source == f"modelled:{model}"
    busiest = []
    for subnet in subnets:
        lids = host_lids(subnet.fabric)
        ones = np.broadcast_to(np.uint64(1), (len(lids), len(lids)))
        loads = spread_matrix(subnet.routes, lids, lids, ones).bytes[:, :, 0]
        busiest.append(
            int(loads[(subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.SWITCH).all(axis=1)].max())
        )
    assert busiest == [by_tables, by_model]


@pytest.mark.parametrize("site", ["written here", *(["far/made"] if REAL else [])])
def test_routes_of_a_far_are_those_of_the_tables(tmp_path: Path, site: str) -> None:
    if site == "written here":
        (tmp_path / "ibnetdiscover-p.txt").write_bytes(read_sample_bytes(SAMPLE, PORT_LIST))
        form = FarForm(blanks="", cut=2, private=1, line_end="\r\n")
        (tmp_path / "ibdiagnet2.far").write_text(write_far(load_sample(SAMPLE, OPENSM), form), newline="")
        expected = count_by_ibprof(load_sample(SAMPLE, OPENSM))
    else:
        expected = KNOWN["plafrim"]
    (files,) = find_rails([tmp_path if site == "written here" else Path(REAL or "") / site])
    subnet = read_rail(files)
    assert subnet.adaptive is not None
    assert subnet.tables is subnet.adaptive.tables
    assert count_by_ibprof(subnet) == expected


LEVELS = {
    "superpod": [1336, 56, 80, 70],
    "cs8500": [1182, 72, 80, 40],
    "installing": [2, 40, 19],
    "director": [1689, 159, 160, 80],
}
"""Number of nodes on each level, as the sites' names of switches show; nodes without a LID are left out."""


@pytest.mark.parametrize("site", ["written here", *(LEVELS if REAL else ())])
def test_levels_are_those_of_the_names_and_no_two_switches_share_one(tmp_path: Path, site: str) -> None:
    folder = Path(REAL or "") / site if site in LEVELS else write_site(tmp_path)
    (files,) = find_rails([folder])
    fabric = read_without_tables(files).fabric
    expected = LEVELS.get(site) or np.bincount(find_levels(load_sample(SAMPLE, OPENSM).fabric)).tolist()
    assert np.bincount(find_levels(fabric)).tolist() == expected
    kinds = zip(fabric.node_name, fabric.node_kind, strict=True)
    switches = [name for name, kind in kinds if kind == NodeKind.SWITCH]
    assert len(set(switches)) == len(switches)
