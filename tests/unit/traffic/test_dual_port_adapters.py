# SPDX-License-Identifier: Apache-2.0
"""An adapter has two ports in one subnet, each with two LIDs. The adapter's host has these two ports."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from ibprof_converter.cli import layout

LEAVES = {0x100: 1, 0x200: 2}
"""GUID -> LID of the leaf switches; their ports 36 are connected with each other."""

ADAPTERS = {
    ("n1 mlx4_0", 0x10): ((0x100, 1, 4), (0x200, 1, 6)),
    ("n2 mlx4_0", 0x20): ((0x100, 2, 8), (0x200, 2, 10)),
    ("n1 mlx5_10", 0x30): ((0x100, 3, 12),),
    ("n1 mlx5_2", 0x40): ((0x200, 3, 14),),
}
"""(host name, node GUID) -> (leaf, port of the leaf, first LID) of each port."""


def write_links(folder: Path) -> str:
    """Write the fabric in the formats of ibnetdiscover and OpenSM."""
    lines = ["#", "# Topology file: generated on Tue Nov 24 09:00:00 2026", "#"]
    cables = [(name, guid, port, *at) for (name, guid), ports in ADAPTERS.items() for port, at in enumerate(ports, 1)]
    for leaf, lid in LEAVES.items():
        other = sum(LEAVES) - leaf
        lines += ["vendid=0x2c9", "devid=0xbd36", f"switchguid=0x{leaf:x}({leaf:x})"]
        lines.append(f'Switch\t36 "S-{leaf:016x}"\t\t# "leaf{leaf:x}" enhanced port 0 lid {lid} lmc 0')
        for name, guid, port, to, switch_port, first in cables:
            if to == leaf:
                far = f'"H-{guid:016x}"[{port}]({guid + port:x}) \t\t# "{name}" lid {first} 4xEDR'
                lines.append(f"[{switch_port}]\t{far}")
        lines += [f'[36]\t"S-{other:016x}"[36]\t\t# "leaf{other:x}" lid {3 - lid} 4xEDR', ""]
    for (name, guid), ports in ADAPTERS.items():
        lines += ["vendid=0x2c9", "devid=0x1003", f"caguid=0x{guid:x}"]
        lines.append(f'Ca\t{len(ports)} "H-{guid:016x}"\t\t# "{name}"')
        for port, (leaf, at, first) in enumerate(ports, 1):
            near = f"[{port}]({guid + port:x}) \t"
            lines.append(f'{near}"S-{leaf:016x}"[{at}]\t\t# lid {first} lmc 1 "leaf{leaf:x}" lid {LEAVES[leaf]} 4xEDR')
        lines.append("")
    (folder / "net.topo").write_text("\n".join(lines))
    rows = []
    for leaf in LEAVES:
        rows.append(f"osm_ucast_mgr_dump_ucast_routes: Switch 0x{leaf:016x}")
        rows.append("LID    : Port : Hops : Optimal")
        out = {lid: 0 if switch == leaf else 36 for switch, lid in LEAVES.items()}
        for _, _, _, to, at, first in cables:
            out |= dict.fromkeys((first, first + 1), at if to == leaf else 36)
        rows += [f"0x{lid:04X} : {port:03d}  : 00   : yes" for lid, port in sorted(out.items())]
    (folder / "net.fdbs").write_text("\n".join(rows) + "\n")
    return str(folder / "net.topo")


def test_ports_of_one_adapter_are_ports_of_their_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ranks 0 to 3 are on n1, ranks 4 and 5 on n2. Rank a sends 1000 + 10 a + b bytes to rank b."""
    links = write_links(tmp_path)
    assert layout.main(["--check", links]) == 0
    counted = "1 host with 3 adapters, 1 host with 1 adapter; 1 host with 4 active ports, 1 host with 2 active ports"
    assert f"rail 0: {counted} in one subnet" in capsys.readouterr().out
    pairs = [(a, b) for a in range(6) for b in range(6) if a != b]
    matrix, placement = tmp_path / "matrix.csv", tmp_path / "placement.csv"
    matrix.write_text("src,dst,bytes,messages\n" + "".join(f"{a},{b},{1000 + 10 * a + b},1\n" for a, b in pairs))
    placement.write_text("rank,host\n" + "".join(f"{rank},{'n1' if rank < 4 else 'n2'}\n" for rank in range(6)))
    assert layout.main([links, str(matrix), "--placement", str(placement)]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    sent = {(row["a_name"], int(row["a_port"])): (int(row["a_bytes"]), int(row["b_bytes"])) for row in rows}
    assert sent == {
        ("n1 mlx4_0", 1): (1004 + 1005, 1040 + 1050),
        ("n1 mlx4_0", 2): (1014 + 1015, 1041 + 1051),
        ("n1 mlx5_2", 1): (1024 + 1025, 1042 + 1052),
        ("n1 mlx5_10", 1): (1034 + 1035, 1043 + 1053),
        ("n2 mlx4_0", 1): (1040 + 1041 + 1042 + 1043, 1004 + 1014 + 1024 + 1034),
        ("n2 mlx4_0", 2): (1050 + 1051 + 1052 + 1053, 1005 + 1015 + 1025 + 1035),
        # Ranks 0, 3 and 4 are on leaf100, ranks 1, 2 and 5 on leaf200.
        ("leaf100", 36): (1005 + 1035 + 1041 + 1042, 1014 + 1024 + 1050 + 1053),
    }
