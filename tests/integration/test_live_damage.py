# SPDX-License-Identifier: Apache-2.0
"""ibprof names the damage to a simulated subnet that OpenSM routes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ibprof_converter.checks.fabric_check import check_fabric_files
from ibprof_converter.fabric.link_formats import read_fabric
from ibprof_converter.routing.rail_files import find_rails
from ibprof_testing.lab.cabling import SWITCH_GUID, fat_tree
from ibprof_testing.lab.opensm_subnet import TIMEOUT_S, simulate

LEAVES, SPINES, HOSTS = 4, 3, 3
LEAF2, SPINE2 = (f'"S-{SWITCH_GUID + 8 * number:016x}"' for number in (1, LEAVES + 1))


@pytest.mark.parametrize(
    ("command", "name", "place"),
    [
        (f"Unlink {LEAF2}[5]", "missing-cable", "'leaf2' to 'spine2'"),
        (
            f"Unlink {SPINE2}",
            "skipped-ports",
            "port 5 of 'leaf1' and 3 more switches, between ports to 'spine1', 'spine3'",
        ),
        (
            f"Unlink {LEAF2}",
            "skipped-ports",
            "port 2 of 'spine1' and 2 more switches, between ports to 'leaf1', 'leaf3', 'leaf4'",
        ),
        ("disable", "route-without-link", "'leaf2' port 5"),
        ("espeed 1", "slow-link", "'leaf2' port 5 to 'spine2' port 2"),
    ],
)
def test_a_cable_or_port_that_fails_is_named(tmp_path: Path, command: str, name: str, place: str) -> None:
    """OpenSM routes around unlinked ports at once, but OpenSM's tables keep a port that `ibportstate` disables."""
    cabling = fat_tree(LEAVES, SPINES, HOSTS, "4xEDR")
    reads, writes = os.pipe()
    with os.fdopen(writes, "wb", 0) as console, os.fdopen(reads) as commands:
        how = "-R minhop"
        with simulate(cabling.text(), cabling.first_host, tmp_path, how, commands.fileno()) as simulated:

            def run(*words: str) -> bytes:
                return subprocess.run(
                    words, cwd=tmp_path, env=simulated, capture_output=True, timeout=TIMEOUT_S, check=True
                ).stdout

            assert check_dumps(tmp_path / "right", run) == {}
            if command.startswith("Unlink"):
                sweeps = count_sweeps(tmp_path)
                console.write(f"{command}\n".encode())
                until = time.monotonic() + TIMEOUT_S
                while count_sweeps(tmp_path) == sweeps:
                    assert time.monotonic() < until, "OpenSM did not notice"
                    time.sleep(0.02)
            else:
                fabric = read_fabric(tmp_path / "opensm-subnet.lst")
                node = fabric.node_name.index("leaf2")
                run("ibportstate", str(fabric.port_lid[fabric.port_node == node][0]), "5", *command.split())
            assert place in check_dumps(tmp_path / "damaged", run)[name]


def count_sweeps(folder: Path) -> int:
    return (folder / "osm.log").read_text(errors="replace").count("SUBNET UP")


def check_dumps(folder: Path, run: Callable[..., bytes]) -> dict[str, str]:
    """Check new dumps of the subnet; return name of the finding -> its places."""
    folder.mkdir()
    (folder / "links.txt").write_bytes(run("ibnetdiscover"))
    (folder / "tables.txt").write_bytes(run("dump_fts"))
    return {each.kind.value.name: ", ".join(each.places) for each in check_fabric_files(find_rails([folder])).findings}
