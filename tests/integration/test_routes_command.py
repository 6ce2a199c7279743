# SPDX-License-Identifier: Apache-2.0
"""`ibprof-routes`: OpenSM's tables made from links alone against captured ones; engines compared for a traffic."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from ibprof_converter.cli import layout
from ibprof_converter.cli.routes import main
from ibprof_converter.routing.opensm_run import route_by_opensm
from ibprof_converter.routing.subnet import read_subnet
from ibprof_testing.paths import DATA

FAULTY = str(DATA / "fabrics/oversub-faulty/opensm-subnet.lst.xz")
DRAGONFLY = str(DATA / "fabrics/dragonfly-72/opensm-subnet.lst.xz")


@pytest.mark.parametrize(("path", "engine"), [(FAULTY, "updn"), (DRAGONFLY, "dfsssp")])
def test_tables_made_from_links_are_those_that_were_captured(path: str, engine: str) -> None:
    """The captured ones were made by the same engine, on a live subnet."""
    captured = read_subnet(path)
    made = route_by_opensm(captured.fabric, engine)
    assert made.engine == engine
    assert made.subnet.warnings == ()
    assert np.array_equal(made.subnet.tables.switch_guid, captured.tables.switch_guid)
    assert np.array_equal(made.subnet.tables.port, captured.tables.port)


def test_rows_are_loads_of_the_engines(capsys: pytest.CaptureFixture[str]) -> None:
    traffic = "pattern:shift:20:1000"
    assert main(["compare", FAULTY, traffic, "--engines", "updn,ftree", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    present, updn, ftree = document["engines"]
    assert layout.main([FAULTY, traffic]) == 0
    lines = capsys.readouterr().out.splitlines()
    columns = lines[0].split(",")
    loads = [int(row.split(",")[columns.index(name)]) for row in lines[1:] for name in ("a_bytes", "b_bytes")]
    for row in (present, updn):  # the captured tables are of updn
        assert row["max_bytes"] == max(loads)
        assert row["mean_bytes"] == pytest.approx(sum(loads) / np.count_nonzero(loads))
    assert (ftree["used"], document["best"]) == ("minhop", "updn")
    assert document["opensm_conf"] == "routing_engine updn"


def test_the_first_line_says_what_the_routes_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "xgft:2:4,4:1,2", "pattern:shift:5:1000", "--engines", "minhop,updn"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("routes: modelled by OpenSM on ibsim")
    assert [line.split()[0] for line in lines[4:7]] == ["present", "minhop", "updn"]
    assert lines[-1].split() == ["routing_engine", "updn"]


@pytest.mark.parametrize(("program", "package"), [("opensm", "opensm"), ("ibsim", "ibsim-utils")])
def test_a_missing_tool_is_named_with_its_package(
    program: str, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, path: None if name == program else found(name, path=path))
    assert main(["compare", FAULTY, "pattern:shift:20:1000", "--engines", "updn"]) == 4
    assert f"{program} is not installed; Debian's package is {package}" in capsys.readouterr().err


def test_an_unknown_engine_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", FAULTY, "pattern:shift:20:1000", "--engines", "updn,fast"]) == 2
    assert "expected some of minhop, updn" in capsys.readouterr().err
