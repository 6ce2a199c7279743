# SPDX-License-Identifier: Apache-2.0
"""OpenSM routes hosts with several adapters in one subnet. Loads follow the routes that ibtracert prints."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ibprof_converter.cli import layout
from ibprof_testing.lab.cabling import HOST_GUID, Cabling
from ibprof_testing.lab.opensm_subnet import TIMEOUT_S, route, simulate
from ibprof_testing.reference.adapters import Dump, Port, flows_by_rank, read_dump, read_sent
from ibprof_testing.samples.fabrics import parse_ibtracert

DEVICES = (10, 0, 2, 1)
LEAVES = 4
HOSTS = 5


def cable(seed: int) -> Cabling:
    """Cable a tree with two spines. Hosts have four adapters, each on a random leaf.

    One host has a single adapter.
    """
    draw = random.Random(seed)
    cabling = Cabling("4xEDR")
    leaves = [cabling.add_switch(f"leaf{number}") for number in range(LEAVES)]
    spines = [cabling.add_switch(f"spine{number}") for number in range(2)]
    for leaf in leaves:
        for spine in spines:
            cabling.link(leaf, spine, draw)
    for host in range(HOSTS):
        for device in DEVICES:
            cabling.link(cabling.add_host(f"gpu{host} mlx5_{device}"), draw.choice(leaves), draw)
    cabling.link(cabling.add_host("storage mlx5_0"), leaves[0], draw)
    return cabling


def of_ibtracert(text: str, dump: Dump, amounts: list[int]) -> Counter[Port]:
    """Add up the bytes that each port sends on ibtracert's paths. ibtracert names an adapter by the GUID of a port."""
    loads: Counter[Port] = Counter()
    for pair, amount in zip(parse_ibtracert(text), amounts, strict=True):
        sender = dump.at[pair.source_lid][0]
        for hop in pair.hops:
            loads[sender, hop.egress_port] += amount
            sender = hop.port_guid
    return loads


@pytest.mark.parametrize("engine", ["minhop", "dfsssp"])
def test_ranks_take_the_adapters_in_turn(tmp_path: Path, engine: str) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest prints this if the test fails
    hosts = [f"gpu{rank // 3}" for rank in range(3 * HOSTS)] + ["storage"] * 2
    draw = random.Random(seed)
    drawn = (draw.sample(range(len(hosts)), 2) for _ in range(40))
    pairs = [(a, b, draw.randrange(1, 1 << 40)) for a, b in drawn]
    pairs.append((len(hosts) - 1, 0, 5))  # so that the matrix has as many ranks as hosts
    (tmp_path / "matrix.csv").write_text("src,dst,bytes,messages\n" + "".join(f"{a},{b},{n},1\n" for a, b, n in pairs))
    (tmp_path / "ranks.csv").write_text("rank,host\n" + "".join(f"{rank},{host}\n" for rank, host in enumerate(hosts)))
    with route(cable(seed), tmp_path, engine) as simulated:
        links = tmp_path / "opensm-subnet.lst"
        dump = read_dump(links, tmp_path / "opensm.fdbs")
        flows = list(flows_by_rank(dump, hosts, pairs))
        said = ""
        for source, destination, _ in flows:
            command = ["ibtracert", str(source), str(destination)]
            done = subprocess.run(
                command, env=simulated, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
            )
            said += f"$ ibtracert {source} {destination}\n{done.stdout}# exit 0\n"
    asked = [str(links), str(tmp_path / "matrix.csv"), "--placement", str(tmp_path / "ranks.csv")]
    assert layout.main([*asked, "-o", str(tmp_path / "links.csv")]) == 0
    assert read_sent(tmp_path / "links.csv") == of_ibtracert(said, dump, [amount for *_, amount in flows])


def test_partitions_of_opensm_divide_the_adapters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cabling = Cabling("4xEDR")
    leaf = cabling.add_switch("leaf")
    adapters = {(host, device): cabling.add_host(f"gpu{host} mlx5_{device}") for host in range(3) for device in DEVICES}
    for adapter in adapters.values():
        cabling.link(adapter, leaf)
    lines = {device: ", ".join(f"{adapters[host, device] + 1:#x}" for host in range(3)) for device in DEVICES}
    one = ", ".join(lines[device] for device in DEVICES[1:])
    text = f"one=0x8001, defmember=full : {one};\n0x2=0x8002 : {lines[DEVICES[0]]};\n"
    (tmp_path / "partitions.conf").write_text(text)
    folders = [tmp_path / name for name in ("file", "tables", "none")]
    with simulate(cabling.text(), cabling.first_host, tmp_path, "-R minhop -P partitions.conf") as simulated:
        shown = ""
        for line in (tmp_path / "guid2lid").read_text().split("\n"):
            if line:
                guid, lid, _ = line.split()
                command = ["smpquery", "pkeys", str(int(lid, 16)), *(["0"] if int(guid, 16) < HOST_GUID else [])]
                done = subprocess.run(
                    command, env=simulated, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
                )
                shown += f"lid {int(lid, 16)}\n{done.stdout}"
    for folder in folders:
        folder.mkdir()
        for name in ("opensm-subnet.lst", "opensm.fdbs", "guid2lid"):
            (folder / name).write_bytes((tmp_path / name).read_bytes())
    (folders[0] / "partitions.conf").write_text(text)
    (folders[1] / "ports.txt").write_text(shown)
    told = []
    for folder in folders:
        assert layout.main([str(folder), "--check"]) == 0
        told.append([line for line in capsys.readouterr().out.split("\n") if line.startswith("interfaces: ")])
    assert (
        told[0]
        == told[1]
        == ["interfaces: compute, the default: 9 of 12 adapters, chosen by partition; left out: mlx5_10"]
    )
    assert told[2] == []
