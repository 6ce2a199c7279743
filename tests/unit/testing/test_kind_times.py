# SPDX-License-Identifier: Apache-2.0
"""The time of each kind of test includes the processes that tests start, on pytest-xdist's workers and elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from ibprof_testing.kind_times import find_kind
from ibprof_testing.paths import ROOT

BUSY = """
import subprocess, sys
def test_busy():
    subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < {}: pass"], check=True)
"""
PLUGIN = """
import pytest
pytest.register_assert_rewrite("ibprof_testing")
pytest_plugins = ["ibprof_testing.kind_times"]
"""
ROW = re.compile(r"^ +([\d,]+) +([\d,]+)   (\S.*)$", re.MULTILINE)


def test_kinds_of_a_worker_and_of_other_commands(tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts/timed.sh", "a command", "sleep", "1"], cwd=tmp_path, check=True)
    for folder, busy_s in (("tests/one", 2), ("tests/other", 0.1)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "test_it.py").write_text(BUSY.format(busy_s))
    times = tmp_path / "build" / "test-times"
    (tmp_path / "conftest.py").write_text(PLUGIN)
    line: list[str | Path] = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "1",
        "--import-mode",
        "importlib",
        "--rootdir",
        tmp_path,
        "tests",
    ]
    environment = os.environ | {"IBPROF_TEST_TIMES": str(times)}
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(
        r"^ +[23]   (\.\./)*tests/one/test_it.py\n +[01]   \S*tests/other/test_it.py$", done.stdout, re.MULTILINE
    )
    rows = {kind: (int(core_s), int(seconds)) for core_s, seconds, kind in ROW.findall(done.stdout)}
    assert set(rows) == {"tests/one", "tests/other", "collection", "a command", "total"}
    assert 2 <= rows["tests/one"][0] <= 3
    assert rows["tests/one"][1] >= 2
    assert rows["tests/other"][0] <= 1
    assert rows["a command"] == (0, 1)


def test_a_command_that_fails_still_fails_and_is_timed(tmp_path: Path) -> None:
    line: list[str | Path] = [ROOT / "scripts/timed.sh", "a kind", "sh", "-c", "echo out; echo err >&2; exit 7"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert re.fullmatch(r"a kind( \d+\.\d+){3}\n", (tmp_path / "build" / "test-times").read_text())


def test_a_kind_is_a_folder() -> None:
    assert find_kind("tests/unit/fabric/test_x.py::test_y[a/b]") == "tests/unit"
    assert find_kind("studies/samplesort/test_x.py::test_y") == "studies"
