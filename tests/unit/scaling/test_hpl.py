# SPDX-License-Identifier: Apache-2.0
"""HPL's model has the efficiency of HPL's web page, is near published results, and refuses invalid inputs."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ibprof_lab.cli.scaling import main
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.scaling.hpl import HplRun, NodeSharing, time_hpl
from ibprof_testing.paths import ROOT

LINE = ("hpl", "--n", "11870208", "--grid", "288x306", "--rate", "116e9:124e9")


@pytest.mark.parametrize(("n", "block", "rows", "columns"), [(1e4, 100, 2, 8), (1e6, 192, 64, 64), (5e4, 128, 4, 4)])
def test_efficiency_is_that_of_the_page(n: float, block: float, rows: int, columns: int) -> None:
    """On HPL's web page, the efficiency is 1 / (1 + latency term + bandwidth term)."""
    gamma, alpha, beta = 1e-10, 2e-6, 8 / 5e9
    times = time_hpl(HplRun(n, block, rows, columns), 1 / gamma, alpha, 8 / beta)
    both = rows * columns
    latency = 3 * alpha * both * ((block + 1) * math.log2(rows) + rows) / (2 * n**2 * block * gamma)
    bandwidth = 3 * beta * (3 * rows + columns) / (4 * gamma * n)
    efficiency = 2 / 3 * n**3 * gamma / both / times.total
    assert efficiency == pytest.approx(1 / (1 + latency + bandwidth))


def test_published_results() -> None:
    """HPL's model predicts published runs without accelerators. The slides' model predicts less than a fifth."""
    printed = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "hpl_published.py"], capture_output=True, text=True, check=True
    ).stdout
    lines, shared = (part.splitlines() for part in printed.split("\n\n"))
    rows = {line.split("|")[1].split(" (")[0].strip(): [cell.strip() for cell in line.split("|")] for line in lines[2:]}
    assert [name for name, cells in rows.items() if cells[-2] == "yes"] == ["K computer", "Sequoia", "TaihuLight"]
    for cells in rows.values():
        published, slides, model = float(cells[2]), float(cells[4]), float(cells[5])
        assert slides < published / 5
        assert 0.75 < model / published < 1.3
    page = (ROOT / "docs" / "how-to" / "scaling.md").read_text()
    assert [line for line in (*lines, *shared) if line not in page] == []
    before, after = (
        [
            int(error.strip("%"))
            for row in shared[2:]
            if (cells := [cell.strip() for cell in row.split("|")])[2] != "1"
            for error in cells[column].split("; ")
        ]
        for column in (-3, -2)
    )
    assert len(before) == len(after) == 16
    assert max(before) == 130
    assert (min(after), max(after)) == (-13, 28)


def test_sharing_slows_a_run_by_its_bytes() -> None:
    """With one process per node, sharing adds only the time of pivot rows to HPL's model.

    Two processes per node halve the bandwidth. With four processes in a row, every second message of a panel stays on
    the node.
    """
    run = HplRun(2e4, 80, 4, 4)
    page, one, two, slow = (
        time_hpl(run, 4e8, 2e-5, 1.32e8, sharing)
        for sharing in (None, NodeSharing(1), NodeSharing(2), NodeSharing(2, 4e8))
    )
    assert one.computing == page.computing
    assert one.moving - page.moving == pytest.approx(8 / 1.32e8 * 2 * 2e4 * 82 * 2)
    panels = 8 / 1.32e8 * 2e4**2 / (2 * 4)
    assert two.moving == pytest.approx(2 * (one.moving - panels / 2))
    assert slow.computing - page.computing == pytest.approx(run.operations / 16 * 8 / 80 * 2 / 4e8)
    assert slow.moving - two.moving == pytest.approx(one.moving * 1.32e8 * 2 * 4 / 4e8)
    whole_row, whole_grid = (time_hpl(run, 4e8, 2e-5, 1.32e8, NodeSharing(shared)).moving for shared in (4, 16))
    assert whole_row == pytest.approx(4 * (one.moving - panels))
    assert whole_grid == 0


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([*LINE, "--bandwidth", "5e9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["performance"]["low"] < 10.51e15 < found["performance"]["high"]
    assert any("separate adapter and memory bus" in note for note in found["notes"])
    assert main([*LINE, "--bandwidth", "5e9", "--slots", "4", "--memory", "60e9", "--json"]) == 0
    shared = json.loads(capsys.readouterr().out)
    assert shared["performance"]["value"] < found["performance"]["value"] < found["without_messages"]
    assert found["without_messages"] == pytest.approx(288 * 306 * 120e9)
    assert (shared["share"], shared["memory"]) == (4, 60e9)
    assert any("with 2 and 4 processes per node" in note for note in shared["notes"])
    lengths = np.array([0, 1024, 65536, 1048576])
    cube = np.broadcast_to((2e-6 + lengths / 5e9)[:, None, None], (4, 2, 2)).astype(np.float32)
    write_delays(tmp_path / "d.nc", Delays(("a", "b"), lengths, cube))
    assert main([*LINE, "--delays", str(tmp_path / "d.nc"), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["performance"]["value"] == pytest.approx(found["performance"]["value"], rel=1e-4)
    texts = {"116e9:124e9": "10.4 PFlop/s (10.1 PFlop/s to 10.7 PFlop/s), ", "120e9": "10.4 PFlop/s, "}
    for rate, text in texts.items():
        assert main([*LINE, "--bandwidth", "5e9", "--rate", rate]) == 0
        assert capsys.readouterr().out.startswith(f"HPL with n = 1.18702e+07 on 288 x 306 processes: {text}")


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ((), 2, "one of --bandwidth and --delays"),
        (("--bandwidth", "5e9", "--slots", "88129"), 2, "expected at most the grid's 88128 processes, found 88129"),
        (("--bandwidth", "5e9", "--memory", "1e9"), 2, "--memory needs --slots"),
        (("--bandwidth", "5e9", "--nb", "1e5"), 5, "no prediction: n = 1.18702e+07 has 119 blocks"),
        (("--delays", "none.nc"), 3, "none.nc"),
    ],
)
def test_what_it_refuses(more: tuple[str, ...], status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LINE, *more]) == status
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--grid", "2"), "ROWSxCOLUMNS"),
        (("--rate", "2:1"), "LOW:HIGH"),
        (("--n", "1e200"), "from 1e-30 to 1e+30, found '1e200'"),
    ],
)
def test_words_that_are_no_grid_or_number(more: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*LINE, "--bandwidth", "1", *more])
    assert said in capsys.readouterr().err
