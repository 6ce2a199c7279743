# SPDX-License-Identifier: Apache-2.0
"""The outputs for testbed44 equal the golden files byte by byte. `pytest --update` replaces the golden files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_converter.cli import layout, report
from ibprof_converter.reports import provenance
from ibprof_testing.paths import DATA
from ibprof_testing.samples.fabrics import FABRICS

HERE = DATA / "golden"
EXPECTED = HERE / "testbed44"

# Run in the fabric's folder, so that no output has a path of this machine.
LAYOUT = ["ibdiagnet.lst", "matrix.csv", "--placement", "spread"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ibdiagnet.lst", "ibdiagnet.fdbs", "guid2lid"):
        (tmp_path / name).write_bytes((FABRICS / "testbed44" / name).read_bytes())
    (tmp_path / "matrix.csv").write_bytes((HERE / "matrix.csv").read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(provenance, "VERSIONS", (("ibprof", "of any version"),))
    return tmp_path


def compare(request: pytest.FixtureRequest, name: str, text: str) -> None:
    expected = EXPECTED / name
    if request.config.getoption("--update"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(text)
    assert text == expected.read_text()


def test_links_nodes_and_yaml(request: pytest.FixtureRequest, folder: Path) -> None:
    assert layout.main([*LAYOUT, "-o", "links.csv", "--nodes", "nodes.csv", "--yaml", "links.yaml"]) == 0
    for name in ("links.csv", "nodes.csv", "links.yaml"):
        compare(request, name, (folder / name).read_text())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "options"), [("report.txt", ["--full"]), ("report.json", ["--json"]), ("brief.txt", [])]
)
def test_report(
    request: pytest.FixtureRequest, name: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main([*LAYOUT, *options, "--top", "4"]) == 0
    compare(request, name, capsys.readouterr().out)
