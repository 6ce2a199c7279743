# SPDX-License-Identifier: Apache-2.0
"""OpenSM loads the forwarding tables of `ibprof-routes write`, and dumps the same tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof_converter.cli import routes
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.table_formats import read_tables
from ibprof_testing.lab.opensm_subnet import net_text, simulate

TREE = "xgft:2:4,4:1,3"


@pytest.mark.parametrize("rule", ["balanced", "d-mod-k", "min-hop"])
def test_opensm_loads_what_is_written(tmp_path: Path, rule: str) -> None:
    fabric = generate(TREE).fabric
    assert routes.main(["write", TREE, "--rule", rule, "-o", str(tmp_path / "tables")]) == 0
    written = read_tables(tmp_path / "tables")
    lids = zip(fabric.port_guid.tolist(), fabric.port_lid.tolist(), strict=True)
    (tmp_path / "guid2lid").write_text("".join(f"{guid:#018x} {lid:#06x} {lid:#06x}\n\n" for guid, lid in lids))
    (tmp_path / "opensm.conf").write_text("honor_guid2lid_file TRUE\n")
    first = next(name for name, kind in zip(fabric.node_name, fabric.node_kind, strict=True) if kind == NodeKind.CA)
    with simulate(net_text(fabric), first, tmp_path, "-F opensm.conf -R file -U tables"):
        loaded = read_tables(tmp_path / "opensm.fdbs")
    assert (loaded.switch_guid == written.switch_guid).all()
    lid = np.array(sorted(fabric.port_lid.tolist()))
    assert (loaded.port[:, lid] == written.port[:, lid]).all()
    assert (written.port[:, lid] != 255).all()


def test_what_cannot_be_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "tables")
    assert routes.main(["write", "torus:6x6:1", "-o", target]) == 5
    assert "can deadlock on one virtual lane" in capsys.readouterr().err
    assert routes.main(["write", "torus:6x6:1", "--rule", "d-mod-k", "-o", target]) == 5
    assert "the fabric is no regular tree" in capsys.readouterr().err
    assert not (tmp_path / "tables").exists()
