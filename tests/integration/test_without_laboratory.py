# SPDX-License-Identifier: Apache-2.0
"""Reports, placements and views work without the libraries of the extra `lab`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ibprof.errors import MissingToolError
from ibprof_converter import load_links, read_fabric
from ibprof_converter.cli import layout, place, report, routes, view
from ibprof_lab import simulate
from ibprof_lab.cli import latency, sim, topology
from ibprof_testing.paths import DATA

CYCLIC = str(DATA / "fabrics/dragonfly-72/opensm-subnet.lst.xz")
TORUS = "torus:4x4x2:1"


@pytest.fixture(autouse=True)
def without_laboratory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "netCDF4", "networkx", "numexpr", "scipy", "sklearn", "threadpoolctl"):
        for module in [module for module in sys.modules if module.partition(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, name, None)
    for module in [each for each in sys.modules if each.startswith("ibprof_converter.outputs.")]:
        monkeypatch.delitem(sys.modules, module)


@pytest.mark.parametrize("fabric", [CYCLIC, TORUS])
def test_commands_of_the_main_job_need_none_of_its_libraries(fabric: str, tmp_path: Path) -> None:
    traffic = [fabric, "pattern:2dnn:1"]
    assert report.main([*traffic, "--full"]) == 0
    assert report.main([*traffic, "--html", str(tmp_path / "report.html")]) == 0
    assert layout.main([*traffic, "-o", str(tmp_path / "links.csv"), "--dot", str(tmp_path / "links.dot")]) == 0
    assert place.main([*traffic, "--time", "0.2", "-o", str(tmp_path / "hosts.csv")]) == 0
    assert view.main([*traffic, "-o", str(tmp_path / "view.html")]) == 0


def test_engines_with_deadlocks_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert routes.main(["compare", CYCLIC, "pattern:2dnn:1", "--engines", "minhop"]) == 0
    assert "minhop" in capsys.readouterr().out


@pytest.mark.parametrize(("option", "library"), [("--png", "matplotlib"), ("--graphml", "networkx")])
def test_an_output_that_needs_one_names_the_extra(
    option: str, library: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = tmp_path / "links.csv"
    assert layout.main([TORUS, "pattern:2dnn:1", "-o", str(links), option, str(tmp_path / "file.png")]) == 4
    assert not links.exists()  # the command ends before it writes
    assert capsys.readouterr().err.endswith(f"{library} is not installed: pip install 'ibprof[lab]'\n")


def test_a_notebook_shows_loads_without_their_picture() -> None:
    html = load_links(read_fabric(str(DATA / "fabrics/testbed44/ibdiagnet.lst")), "pattern:2dnn:1")._repr_html_()
    assert "<p>picture: matplotlib is not installed: pip install &#x27;ibprof[lab]&#x27;</p>" in html


@pytest.mark.parametrize(
    ("main", "arguments", "library"),
    [
        (sim.main, ["study", "placement", "--quick", "-o", "out"], "matplotlib"),
        (sim.main, ["threshold", "--fabric", TORUS, "--size", "4KiB"], "scipy"),
        (latency.main, ["measure", "-o", "delays.nc"], "netCDF4"),
        (latency.main, ["measure", "--few-pairs", "-o", "delays.csv"], "scipy"),
        (topology.main, ["infer", "delays.csv"], "networkx"),
    ],
)
def test_a_command_of_the_laboratory_ends_before_its_work(
    main: Callable[[list[str]], int],
    arguments: list[str],
    library: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 4
    assert capsys.readouterr().err.endswith(f"{library} is not installed: pip install 'ibprof[lab]'\n")
    assert not list(tmp_path.iterdir())


def test_a_simulation_from_python_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="matplotlib is not installed"):
        simulate(tmp_path / "study.yaml", tmp_path / "out")
