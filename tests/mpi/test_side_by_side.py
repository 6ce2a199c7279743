# SPDX-License-Identifier: Apache-2.0
"""The benchmark that compares ibprof with full timing prints one row for a call site, even with two callers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ibprof_testing.mpi.mpis import Build, Mpi
from ibprof_testing.paths import ROOT

CALLS, LATE_S = 40, 0.01
ROW = re.compile(r"^\| (\w+) \| ([^|]*) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|", re.MULTILINE)


@pytest.mark.parametrize("callers", ["0", "2"])
def test_one_line_of_two_callers(callers: str, system_mpi: Mpi, build: Build) -> None:
    program = build(system_mpi, "two_callers.c", "-g", "-O1")
    line: list[str | Path] = [
        sys.executable,
        ROOT / "benchmarks" / "overhead" / "side_by_side.py",
        "--callers",
        callers,
    ]
    done = subprocess.run(
        [*line, "--", program, str(CALLS), str(LATE_S)], capture_output=True, text=True, check=True, timeout=100
    )
    barriers, every_call = ROW.findall(done.stdout)
    site = "" if callers == "0" else "two_callers.c:"
    assert barriers[0] == "BARRIER"
    assert barriers[1].startswith(site)
    # two ranks, two callers
    assert barriers[2] == f"{2 * 2 * CALLS}"
    assert every_call[0] == "all"
    for _, _, _, full_s, recorded_s in (barriers, every_call):
        assert float(full_s) >= CALLS * LATE_S
        assert float(recorded_s) == pytest.approx(float(full_s), rel=0.01)
