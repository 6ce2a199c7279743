# SPDX-License-Identifier: Apache-2.0
"""OpenSM routes hosts with several adapters in one subnet; loads are those of the routes that ibtracert prints."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ibprof_converter.cli import layout
from ibprof_testing.lab.cabling import Cabling
from ibprof_testing.lab.opensm_subnet import TIMEOUT_S, route
from ibprof_testing.reference.adapters import Dump, Port, flows_by_rank, read_dump, read_sent
from ibprof_testing.samples.fabrics import parse_ibtracert

DEVICES = (10, 0, 2, 1)
LEAVES = 4
HOSTS = 5


def cable(seed: int) -> Cabling:
    """Cable hosts with four adapters, each to a leaf that is drawn, below two spines; one host has a single one."""
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
    """Add up what ibtracert's lines say that each port sends; of an adapter it prints the GUID of the port."""
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
    print(f"seed {seed}")  # shown when the test fails
    hosts = [f"gpu{rank // 3}" for rank in range(3 * HOSTS)] + ["storage"] * 2
    draw = random.Random(seed)
    drawn = (draw.sample(range(len(hosts)), 2) for _ in range(40))
    pairs = [(a, b, draw.randrange(1, 1 << 40)) for a, b in drawn]
    pairs.append((len(hosts) - 1, 0, 5))  # a matrix has as many ranks as it names
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
