# SPDX-License-Identifier: Apache-2.0
"""ibprof reads the same Fabric of a random subnet from all tools' outputs. Synthetic tables lead to the right hosts."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.fabric.link_formats import read_fabric
from ibprof_converter.routing.spread import Reason, trace
from ibprof_converter.routing.subnet import infer_lmc
from ibprof_converter.routing.subnet_routes import IndexedNetwork
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.table_formats import read_tables
from ibprof_testing.lab.cabling import random_tree
from ibprof_testing.lab.opensm_subnet import route, route_by_tables
from ibprof_testing.samples.equality import LINKS, NODES, PORTS, check_equal, check_tables
from ibprof_testing.samples.fabrics import as_traced, parse_ibtracert, read_subnet

PAIRS = 20


def run(folder: Path, simulated: dict[str, str], name: str, *command: str) -> Path:
    done = subprocess.run(command, cwd=folder, env=simulated, capture_output=True, timeout=60, check=True)
    (folder / name).write_bytes(done.stdout)
    return folder / name


@pytest.mark.parametrize("lmc", [0, 2])
def test_every_tool_shows_the_same_fabric(tmp_path: Path, lmc: int) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest prints this if the test fails
    with route(random_tree(seed), tmp_path, "minhop", lmc) as simulated:
        links = run(tmp_path, simulated, "a", "ibnetdiscover")
        ports = run(tmp_path, simulated, "b", "ibnetdiscover", "-p")
        info = run(tmp_path, simulated, "i", "iblinkinfo", "-l")
        tables = run(tmp_path, simulated, "c", "dump_fts")
    expected = read_subnet(tmp_path / "opensm-subnet.lst")
    assert expected.fabric.port_lmc.max() == lmc
    check_equal(read_fabric(links), expected.fabric, {*NODES, *LINKS, *PORTS})
    for path in (ports, info):
        listed = infer_lmc(read_fabric(path), expected.tables)
        # Both formats lack GUIDs of systems and exact GUIDs of adapters.
        check_equal(listed, expected.fabric, {"node_kind", "node_name", *LINKS, "port_guid", "port_lid"})
    for path in (tables, tmp_path / "opensm-lfts.dump"):
        check_tables(read_tables(path), expected.tables)


@pytest.mark.parametrize("name", ["xgft:3:3,3,2:1,3,2:1,1,2", "torus:3x4:1", "dragonfly:3,2,1"])
def test_synthetic_tables_lead_on_a_subnet_where_they_lead_here(tmp_path: Path, name: str) -> None:
    """OpenSM loads ibprof's tables unchanged into the simulated switches, and ibtracert follows them."""
    made = generate(name)
    draw = random.Random(name)
    lids = list(range(1, 1 + int((made.fabric.node_kind == 0).sum())))
    pairs = [draw.sample(lids, 2) for _ in range(PAIRS)]
    with route_by_tables(made.fabric, made.tables, tmp_path) as simulated:
        said = "".join(
            f"$ ibtracert {a} {b}\n{run(tmp_path, simulated, 'd', 'ibtracert', str(a), str(b)).read_text()}# exit 0\n"
            for a, b in pairs
        )
    read = read_subnet(tmp_path / "opensm-subnet.lst")
    check_shape(read.fabric, made.fabric)
    walked = list(parse_ibtracert(said))
    assert len(walked) == PAIRS
    network = IndexedNetwork.index(made.fabric, made.tables)
    for pair in walked:
        path = trace(network, pair.source_lid, pair.destination_lid)
        assert path.reason is Reason.DELIVERED
        assert tuple(as_traced(made.fabric, hop) for hop in path.hops) == pair.hops


def check_shape(found: Fabric, expected: Fabric) -> None:
    for field in ("node_guid", "node_kind", "link_node", "link_port", "port_lid", "port_guid"):
        assert np.array_equal(getattr(found, field), getattr(expected, field)), field
